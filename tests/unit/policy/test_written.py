"""Decisions written down once say what the published cycle says."""

import hashlib
import json
from dataclasses import replace

from tests.unit.policy.forests import account, cluster, hosts, pending, run

from gpuledger.policy.cycle import Cycle, PolicyConfig, Shared, run_cycle
from gpuledger.policy.pieces import WITH_SENTENCES
from gpuledger.policy.published import as_json
from gpuledger.policy.written import PIECE, write


def cycle(waiting: int) -> Cycle:
    return run_cycle(
        cluster(
            [account("org/a"), account("org/b/c"), account("z", share=0)],
            [
                pending(
                    f"w{n}",
                    ("org/a", "org/b/c", "z")[n % 3],
                    gpus=4 * (n % 4) + 1,
                    hours=n % 2,
                    priority=n % 5,
                )
                for n in range(waiting)
            ],
            [run("org/b/c", gpus=8, name="r", hosts={"h0": 8})],
            on=hosts(8, 8),
        ),
        PolicyConfig(),
    )


CYCLE = cycle(24)


def test_what_was_written_is_what_is_published_in_the_same_order() -> None:
    assert 0 < sum(isinstance(one, Shared) for one in CYCLE.decisions) < len(CYCLE.decisions)
    assert json.dumps(write(CYCLE.decisions).read()) == json.dumps(as_json(CYCLE)["decisions"])


def test_a_long_queue_comes_back_from_its_pieces() -> None:
    long = cycle(2 * PIECE + 1)
    written = write(long.decisions)
    assert len(written.pieces) == 3
    assert written.count == len(long.decisions)
    assert written.read() == as_json(long)["decisions"]


def test_nothing_is_one_piece_of_nothing() -> None:
    written = write(())
    assert (len(written.pieces), written.count, written.read()) == (1, 0, [])


def test_what_stands_at_another_place_than_its_own_is_said_all_the_same() -> None:
    backwards = CYCLE.decisions[::-1]
    assert write(backwards).read() == as_json(replace(CYCLE, decisions=backwards))["decisions"]


def test_the_digest_is_that_of_the_pieces() -> None:
    written = write(CYCLE.decisions)
    assert written.digest == hashlib.sha256(b"".join(written.pieces)).hexdigest()
    assert written.digest != write(CYCLE.decisions[:-1]).digest


def test_of_an_older_cycle_the_digest_is_that_of_the_whole_list_with_keys_in_order() -> None:
    whole = json.dumps(as_json(CYCLE)["decisions"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    older = write(CYCLE.decisions, form=WITH_SENTENCES)
    assert older.digest == hashlib.sha256(whole.encode()).hexdigest()
    assert older.pieces == write(CYCLE.decisions).pieces
    assert write((), form=WITH_SENTENCES).digest == hashlib.sha256(b"[]").hexdigest()


def test_those_who_wait_are_counted_by_what_they_ask_for() -> None:
    waiting = [d for d in as_json(CYCLE)["decisions"] if d["action"] == "wait"]
    assert waiting
    counted = write(CYCLE.decisions).waiting_milli
    assert sum(counted.values()) == len(waiting)
    assert counted[9000] == sum(decision["numbers"]["gpus_milli"] == 9000 for decision in waiting) > 0
