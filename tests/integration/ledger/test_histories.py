"""Histories made again some workloads at a time, while the server does something else."""

import pytest
from tests.integration.ledger.books import HOUR, Ledger, run_of, started, submitted, told

from gpuledger.database.engine import Writer, writing
from gpuledger.kernel.errors import Corrupt
from gpuledger.ledger import histories, rebuild

RUNS = 7
STANDING = {
    table: f"SELECT to_jsonb(t) - 'id' FROM ledger.{table} AS t ORDER BY {order}"
    for table, order in (
        ("segments", "workload, run, from_at, since_seq"),
        ("waits", "workload, from_at, since_seq"),
        ("holds", "workload, attempt, since_seq"),
    )
}


@pytest.fixture(scope="module")
def full(shared_ledger: Ledger) -> Ledger:
    for n in range(RUNS):
        shared_ledger.append(*run_of(n, n + HOUR, f"w{n}"))
    shared_ledger.append(told(5, submitted("waiting")), told(6, submitted("open")), told(7, started("open")))
    with writing(
        shared_ledger.engine
    ) as writer:  # versions that stood within a batch are kept by a rebuild alone
        rebuild.rebuild(writer, shared_ledger.calendar)
    return shared_ledger


@pytest.mark.parametrize("at_once", [1, 2, 4, RUNS + 2, 100])
def test_however_many_are_made_at_once_the_same_stands(
    full: Ledger, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    before = {table: full.rows(asked) for table, asked in STANDING.items()}
    assert len(before["segments"]) > RUNS
    assert before["waits"]
    monkeypatch.setattr(histories, "WORKLOADS_AT_ONCE", at_once)

    with writing(full.engine) as writer:
        rebuild.rebuild(writer, full.calendar)

    assert {table: full.rows(asked) for table, asked in STANDING.items()} == before


def test_what_is_done_meanwhile_is_done_once_with_and_without_workloads(
    full: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = []

    def meanwhile(writer: Writer) -> None:
        called.append(writer)
        writer.exec_driver_sql("SELECT pg_sleep(0.05)")  # long enough to derive all of the first part

    monkeypatch.setattr(histories, "WORKLOADS_AT_ONCE", 3)
    before = full.rows(STANDING["segments"])
    with writing(full.engine) as writer:
        for table in STANDING:
            writer.exec_driver_sql(f"DELETE FROM ledger.{table}")
        writer.exec_driver_sql("DELETE FROM telemetry.handles")
        histories.rebuild(writer, meanwhile=meanwhile)
    assert full.rows(STANDING["segments"]) == before
    monkeypatch.setattr(histories, "parts", lambda _: iter(()))
    with writing(full.engine) as writer:
        histories.rebuild(writer, meanwhile=meanwhile)
    assert len(called) == 2


def test_a_row_that_nothing_follows_from_stops_it_and_nothing_is_half_done(
    full: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {table: full.rows(asked) for table, asked in STANDING.items()}

    def corrupt(*_: object) -> None:
        raise Corrupt("row 3 cannot be read", hint="look at it")

    monkeypatch.setattr(histories.replay, "history_versions", corrupt)
    with pytest.raises(Corrupt, match="row 3"), writing(full.engine) as writer:
        rebuild.rebuild(writer, full.calendar)
    assert {table: full.rows(asked) for table, asked in STANDING.items()} == before
