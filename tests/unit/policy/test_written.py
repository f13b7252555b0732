"""Decisions written down once say what the published cycle says."""

import hashlib
import json
from dataclasses import replace

from tests.unit.policy.forests import account, cluster, hosts, pending, run

from gpuledger.policy.cycle import PolicyConfig, run_cycle
from gpuledger.policy.published import as_json
from gpuledger.policy.written import write

CYCLE = run_cycle(
    cluster(
        [account("a"), account("b")],
        [pending(f"w{n}", "ab"[n % 2], gpus=4 * (n % 3) + 1, hours=n % 2) for n in range(12)],
        [run("b", gpus=8, name="r", hosts={"h0": 8})],
        on=hosts(8, 8),
    ),
    PolicyConfig(),
)


def test_what_was_written_is_what_is_published_in_the_same_order() -> None:
    written, published = write(CYCLE.decisions), as_json(CYCLE)["decisions"]
    assert [one.workload for one in written.said] == [decision["workload"] for decision in published]
    assert json.dumps(written.read()) == json.dumps(published)


def test_the_digest_is_that_of_the_whole_list_with_keys_in_order() -> None:
    whole = json.dumps(as_json(CYCLE)["decisions"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert write(CYCLE.decisions).digest == hashlib.sha256(whole.encode()).hexdigest()
    assert write(()).digest == hashlib.sha256(b"[]").hexdigest()


def test_a_queue_that_is_written_piece_by_piece_is_one_list() -> None:
    every = CYCLE.decisions * 99
    published = as_json(replace(CYCLE, decisions=every))["decisions"]
    whole = json.dumps(published, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    written = write(every)
    assert (written.digest, written.read()) == (hashlib.sha256(whole.encode()).hexdigest(), published)


def test_those_who_wait_are_counted_by_what_they_ask_for() -> None:
    waiting = [d for d in as_json(CYCLE)["decisions"] if d["action"] == "wait"]
    assert waiting
    counted = write(CYCLE.decisions).waiting_milli
    assert sum(counted.values()) == len(waiting)
    assert counted[9000] == sum(decision["numbers"]["gpus_milli"] == 9000 for decision in waiting) > 0
