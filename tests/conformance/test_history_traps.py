"""Schedulers' traps that show in a history of records: late ends, two classes in one run, siblings, shared devices."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.integration.ledger.books import GPU_HOUR, NOON, Ledger, at
from tests.unit.sources.slurm.told import (
    HOUR,
    Told,
    gpu_seconds,
    histories,
    read,
    traps,
    understood,
    written,
)

from gpuledger.database.engine import writing
from gpuledger.events.envelope import Event
from gpuledger.ledger.closing import close_period
from gpuledger.ledger.facts import Known
from gpuledger.ledger.faults import incidents_of
from gpuledger.ledger.segments import derive
from gpuledger.sources.protocol import ImportOptions

TEXT, JSON, SQUEUE = "slurm-sacct-text", "slurm-sacct-json", "slurm-squeue-json"
EVENING = at("2026-11-30T20:00:00Z")
ONE_GPU = "gres/gpu=1"


def told_in(tmp_path: Path, name: str, *runs: Told) -> list[Event]:
    path = tmp_path / f"{name}-{len(list(tmp_path.iterdir()))}"
    path.mkdir()
    return understood(read(name, path, written(name, *runs)))


@pytest.mark.parametrize("name", [TEXT, JSON])
@traps(30, TEXT, JSON)
def test_30_an_end_after_the_close_is_an_adjustment_in_the_open_period(
    tmp_path: Path, database_url: str, name: str
) -> None:
    ledger = Ledger(database_url)
    running = Told(state="RUNNING", submit=EVENING, start=EVENING, end=None, tres=ONE_GPU, asked=ONE_GPU)
    over = Told(submit=EVENING, start=EVENING, end=EVENING + 2 * HOUR, tres=ONE_GPU, asked=ONE_GPU)
    ledger.append(*told_in(tmp_path, name, running))
    ledger.clock = type(ledger.clock)(NOON)
    with writing(ledger.engine) as writer:
        close_period(writer, "alpha", "2026-11", "ada", clock=ledger.clock, calendar=ledger.calendar)
    sealed = ledger.net()
    ledger.append(*told_in(tmp_path, name, over))
    late = ledger.rows(
        "SELECT code, effective_on::text, debit_period, amount FROM ledger.postings AS p"
        " WHERE commodity = 'gpu_ms' AND seq > (SELECT max(seq) FROM ledger.journal WHERE type = 'period.closed')"
    )
    changed = 2 * GPU_HOUR - sum(sealed.values())
    assert sum(amount if code == "charge" else -amount for code, *_, amount in late) in {changed, -changed}
    assert {(day, period) for _, day, period, _ in late} == {("2026-11-30", "2026-12")}
    assert ledger.total() == 2 * GPU_HOUR
    ledger.engine.dispose()


@pytest.mark.trap(54, "events")
def test_54_a_run_that_changes_its_class_is_two_intervals(tmp_path: Path) -> None:
    told = {
        "started": (0, '"run": "1", "attempt": 1, "gpus_milli": 8000, "hosts": ["n1"]'),
        "class_changed": (1, '"run": "1", "class": "unallocated", "reason": "over-budget"'),
        "ended": (3, '"run": "1", "reason": "done"'),
    }
    lines = [
        f'{{"specversion": "1.0", "id": "{what}", "source": "scheduler", "type": "org.gpuledger.workload.{what}.v1",'
        f' "time": "2026-11-30T2{hour}:00:00Z", "data": {{"cluster": "alpha", "workload": "w", {keys}}}}}\n'
        for what, (hour, keys) in told.items()
    ]
    path = tmp_path / "events.ndjson"
    path.write_text("".join(lines))
    events = understood(read("events", tmp_path, path.read_bytes(), ImportOptions()))
    (history,) = histories(events).values()
    assert [(s.klass, s.to_s and s.to_s - s.from_s) for s in history.segments] == [
        ("allocated", HOUR),
        ("unallocated", 2 * HOUR),
    ]
    assert sum(gpu_seconds(events).values()) == 8 * HOUR


@pytest.mark.parametrize("name", [TEXT, JSON])
@traps(55, TEXT, JSON)
def test_55_a_node_that_fails_and_the_tasks_cancelled_with_it_are_one_incident(
    tmp_path: Path, name: str
) -> None:
    failed = [
        Told(
            job=5000 + n,
            array=5000,
            task=n,
            state="NODE_FAIL" if n == 0 else "CANCELLED by 0",
            nodes=f"node{n}",
            end=EVENING + HOUR + (n > 0),
            submit=EVENING,
            start=EVENING,
        )
        for n in range(64)
    ]
    facts = known(told_in(tmp_path, name, *failed))
    by_host = [incident.host for incident in incidents_of("alpha", (), facts)]
    assert by_host == ["node0"]
    assert incidents_of("alpha", (), [*facts, *facts]) == incidents_of("alpha", (), facts)


@pytest.mark.parametrize("name", [TEXT, JSON])
@traps(35, TEXT, JSON)
def test_35_two_jobs_on_the_same_gpus_are_each_charged_and_nothing_is_clamped(
    tmp_path: Path, name: str
) -> None:
    pair = [Told(job=n, submit=EVENING, start=EVENING, end=EVENING + HOUR) for n in (1, 2)]
    events = told_in(tmp_path, name, *pair)
    assert sorted(gpu_seconds(events).values()) == [8 * HOUR, 8 * HOUR]
    assert {len(derive(known(events, workload)).segments) for workload in gpu_seconds(events)} == {1}


def known(events: Sequence[Event], workload: str | None = None) -> list[Known]:
    return [
        Known(event.data, event.at_s, event.source, event.digest)
        for event in events
        if workload in {None, getattr(event.data, "workload", None)}
    ]
