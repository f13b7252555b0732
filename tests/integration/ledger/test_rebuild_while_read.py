"""Fault checklist 35: while all is dropped and made again, whoever reads waits for nobody and reads what stood."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.integration.ledger.books import GPU_HOUR, HOUR, Ledger, granted, run_of, told

from gpuledger.database.engine import Reader, Writer, reading, writing
from gpuledger.events.budget import AccountCreated
from gpuledger.ledger import cycle_decisions, rebuild
from gpuledger.ledger.audit import verify
from gpuledger.ledger.balances import BalanceQuery, balance
from gpuledger.ledger.rebuild import state_digest
from gpuledger.ledger.usage import By, UsageQuery, usage

RUNS = 50


@pytest.fixture
def booked(ledger: Ledger) -> Ledger:
    ledger.append(*(told(0, AccountCreated(account=name)) for name in ("org", "org/vision")))
    ledger.append(told(0, granted("org/vision", "1970-01", 1000 * GPU_HOUR)))
    ledger.append(*(event for n in range(RUNS) for event in run_of(0, HOUR, f"w{n}")))
    return ledger


@contextmanager
def impatient(ledger: Ledger) -> Iterator[Reader]:
    """A reader that fails as soon as it would wait for a lock."""
    with reading(ledger.engine) as reader:
        reader.exec_driver_sql("SET LOCAL lock_timeout = '1ms'")
        yield reader


def answers(ledger: Ledger) -> tuple[object, ...]:
    """Return what the reports say; none of them may wait."""
    with impatient(ledger) as reader:
        query = BalanceQuery("alpha", "1970-01")
        stands = balance(reader, "org/vision", query, HOUR, ledger.calendar)
        used = usage(reader, UsageQuery(By.ACCOUNT), HOUR, ledger.calendar)
        return stands, used, state_digest(reader)


def test_reads_wait_for_no_rebuild_and_say_what_stood_before_it(booked: Ledger) -> None:
    before = answers(booked)
    with writing(booked.engine) as writer:
        for table in rebuild.PROJECTIONS:
            writer.exec_driver_sql(f"DELETE FROM {table}")
        assert answers(booked) == before, "nothing is there in the rebuild's own eyes"
        rebuild.rebuild(writer, booked.calendar)
        assert answers(booked) == before, "all was made again, and is not committed"
    assert answers(booked) == before


def test_reads_that_go_on_through_several_rebuilds_and_an_append_are_all_right(booked: Ledger) -> None:
    before, read, over = answers(booked), [], threading.Event()

    def read_on() -> None:
        while not over.is_set():
            read.append(answers(booked))

    readers = [threading.Thread(target=read_on) for _ in range(2)]
    for reader in readers:
        reader.start()
    for _ in range(3):
        with writing(booked.engine) as writer:
            rebuild.rebuild(writer, booked.calendar)
    booked.append(*run_of(0, HOUR, "late"))
    over.set()
    for reader in readers:
        reader.join()
    after = answers(booked)
    assert after != before
    assert len(read) > len(readers)
    assert [one for one in read if one not in (before, after)] == []
    with reading(booked.engine) as reader:
        assert verify(reader).ok
        assert rebuild.check(reader, booked.calendar).ok


def test_an_append_that_meets_a_rebuild_waits_and_is_whole(booked: Ledger) -> None:
    with writing(booked.engine) as writer:
        rebuild.rebuild(writer, booked.calendar)
        other = threading.Thread(target=lambda: booked.append(*run_of(0, HOUR, "late")))
        other.start()
        while not booked.rows("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
            assert other.is_alive()
    other.join()
    with reading(booked.engine) as reader:
        assert rebuild.check(reader, booked.calendar).ok
    assert booked.net()["charge", "org/vision", "late/r1", "1970-01-01"] == 8 * GPU_HOUR


def test_nobody_waits_while_kept_decisions_are_digested(
    booked: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A day of a large cluster's decisions takes minutes; whoever appends meanwhile is rebuilt with the rest."""
    forged = cycle_decisions.forged

    def forged_meanwhile(writer: Writer) -> list[tuple[str, int]]:
        booked.append(*run_of(0, HOUR, "meanwhile"))
        return forged(writer)

    monkeypatch.setattr(cycle_decisions, "forged", forged_meanwhile)
    with writing(booked.engine) as writer:
        rebuild.rebuild(writer, booked.calendar)
    monkeypatch.undo()
    assert (
        booked.value(
            "SELECT count(*) FROM ledger.segments WHERE workload = 'meanwhile' AND until_seq IS NULL"
        )
        == 1
    )
    with reading(booked.engine) as reader:
        assert rebuild.check(reader, booked.calendar).ok
