"""The ledger on a real cluster: every run becomes the GPU-seconds that were worked out by hand, to the second."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.commands import fixtures
from tests.commands.fixtures import Ledger
from tests.slurm.conftest import Watcher
from tests.slurm.scenario import Played

pytestmark = pytest.mark.slurm

ledger = fixtures.ledger


def by_job(ledger: Ledger) -> dict[str, int]:
    """Return the GPU-seconds of each job, tasks of an array together; nothing may run any more."""
    held: dict[str, int] = {}
    for workload, gpu_ms in ledger.rows(
        "SELECT workload, sum(gpus_milli * extract(epoch FROM to_at - from_at))::bigint FROM ledger.segments"
        " WHERE until_seq IS NULL GROUP BY workload"
    ):
        job = workload.rpartition("-")[0].partition("_")[0]
        held[job] = held.get(job, 0) + gpu_ms // 1000
    return held


def expected(played: Mapping[str, Played]) -> dict[str, int]:
    return {one.job: one.gpu_seconds for one in played.values() if one.gpu_seconds}


def charged(ledger: Ledger) -> int:
    """Return the GPU-seconds that were charged in all."""
    ((gpu_ms,),) = ledger.rows(
        "SELECT sum(amount)::bigint FROM ledger.postings WHERE commodity = 'gpu_ms' AND code = 'charge'"
    )
    return int(gpu_ms) // 1000


def still_open(ledger: Ledger) -> list[tuple[object, ...]]:
    """Return what runs or waits: nothing, once every job is over."""
    return ledger.rows(
        "SELECT workload FROM ledger.segments WHERE until_seq IS NULL AND to_at IS NULL"
        " UNION SELECT workload FROM ledger.waits WHERE until_seq IS NULL AND to_at IS NULL"
    )


def test_a_collector_that_watched_and_was_killed_amid_it_all_booked_what_was_held(
    watcher: Watcher, played: Mapping[str, Played]
) -> None:
    watcher.ledger.done("collect", "slurm", "--once")

    assert by_job(watcher.ledger) == expected(played)
    assert charged(watcher.ledger) == sum(expected(played).values())
    assert still_open(watcher.ledger) == []


def test_another_look_finds_nothing_new(watcher: Watcher, played: Mapping[str, Played]) -> None:
    watcher.ledger.done("collect", "slurm", "--once")
    again = watcher.ledger.done("collect", "slurm", "--once")

    assert again["failures"] == []
    assert {name: report["dead_lettered"] for name, report in again["sources"].items()} == {
        "slurm-sacct-json": 0, "slurm-squeue-json": 0, "slurm-nodes": 0,
    }  # fmt: skip
    assert again["sources"]["slurm-sacct-json"]["accepted"] == 0
    assert again["sources"]["slurm-squeue-json"]["accepted"] == 0


def test_an_import_of_accounting_alone_says_the_same(
    ledger: Ledger, dump: Path, played: Mapping[str, Played]
) -> None:
    assert ledger.done("import", "slurm-sacct-json", dump)["dead_lettered"] == 0

    assert by_job(ledger) == expected(played)
    (row,) = ledger.usage("cluster")["rows"]
    assert (row["key"], row["gpu_ms"]) == ("ai2test", 1000 * sum(expected(played).values()))
    assert ledger.done("reconcile", "slurm", dump)["differences"] == []


def test_the_ledger_and_slurm_do_not_differ(
    watcher: Watcher, dump: Path, played: Mapping[str, Played]
) -> None:
    watcher.ledger.done("collect", "slurm", "--once")

    for compared in (
        watcher.ledger.done("reconcile", "slurm", dump), watcher.ledger.done("reconcile", "slurm", "--live")
    ):  # fmt: skip
        assert compared["ok"]
        assert compared["differences"] == []
        assert compared["runs"] == sum(len(one.rows) for one in played.values() if one.gpu_seconds)
        assert compared["ledger_gpu_ms"] == compared["record_gpu_ms"] == 1000 * sum(expected(played).values())


def test_a_node_that_failed_is_known_to_have_failed_and_come_back(
    watcher: Watcher, played: Mapping[str, Played]
) -> None:
    states = watcher.ledger.rows(
        "SELECT body ->> 'host', body ->> 'state' FROM ledger.journal WHERE type = 'host.state_changed'"
        " AND body ->> 'host' = 'node3' ORDER BY effective_at"
    )

    assert states[0][1] == "healthy"
    assert "unhealthy" in [state for _, state in states]
    assert states[-1][1] == "healthy"


def test_what_never_reached_the_ledger_is_found_and_mended(
    ledger: Ledger, played: Mapping[str, Played], tmp_path: Path, dump: Path
) -> None:
    whole = json.loads(dump.read_text())
    lost = {int(played[name].job) for name in ("requeue", "suspend")}
    part = tmp_path / "part.json"
    part.write_text(json.dumps({**whole, "jobs": [j for j in whole["jobs"] if j["job_id"] not in lost]}))
    ledger.done("import", "slurm-sacct-json", part)

    found = ledger("reconcile", "slurm", dump, "--grace", 0, "--json")
    assert found.status == 3
    assert found.json["classes"] == {"lost-event": 3}

    mended = ledger.done("reconcile", "slurm", dump, "--grace", 0, "--repair")
    assert (mended["repaired"], mended["differences"]) == (3, [])
    assert by_job(ledger) == expected(played)
    ledger.checked_digest()
