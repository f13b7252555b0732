"""The one way into the journal: law 2, and the sequence and times of law 5."""

import datetime as dt
import threading

import msgspec
import pytest
from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    NOON,
    Ledger,
    ended,
    run_of,
    started,
    submitted,
    told,
)

from gpuledger.database.engine import writing
from gpuledger.ledger.append import append


def test_known_events_change_nothing_whether_in_one_batch_or_later(ledger: Ledger) -> None:
    events = run_of(0, HOUR)
    first = ledger.append(*events, *events)
    again = ledger.append(*reversed(events))
    assert (len(first.accepted), first.repeated) == (3, 3)
    assert (again.accepted, again.repeated) == ([], 3)
    assert again.head == first.head
    assert ledger.value("SELECT count(*) FROM ledger.journal") == 3


def test_two_bodies_under_one_identity_are_both_kept_and_one_counts(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR))
    ledger.append(told(3 * HOUR, ended(), id="x"), told(2 * HOUR, ended(), id="x"))
    assert ledger.value("SELECT count(*) FROM ledger.journal WHERE event_id = 'x'") == 2
    assert ledger.total() == 3 * 8 * GPU_HOUR


def test_a_transaction_that_fails_leaves_nothing(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR))
    tables = ("journal", "postings", "balances", "segments", "waits", "books")
    before = [ledger.rows(f"SELECT * FROM ledger.{table} ORDER BY 1, 2") for table in tables]
    users = ledger.rows("SELECT name FROM side.user_keys")
    events = [
        told(5, submitted("w2", user="grace"), comment="text"),
        told(5, started("w2")),
        told(9, ended("w2")),
    ]

    def fail_after_writing() -> None:
        with writing(ledger.engine) as writer:
            append(writer, CLUSTER, events, clock=ledger.clock, calendar=ledger.calendar)
            raise RuntimeError("power")

    with pytest.raises(RuntimeError, match="power"):
        fail_after_writing()
    assert [ledger.rows(f"SELECT * FROM ledger.{table} ORDER BY 1, 2") for table in tables] == before
    assert ledger.rows("SELECT name FROM side.user_keys") == users
    assert ledger.value("SELECT count(*) FROM side.texts") == 0
    assert ledger.append(*events).head.last_seq == 6


def test_sequences_are_gapless_per_book_also_when_writers_race(ledger: Ledger) -> None:
    def write(number: int) -> None:
        for turn in range(5):
            ledger.append(*run_of(0, HOUR, f"w{number}-{turn}"))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [seq for (seq,) in ledger.rows("SELECT seq FROM ledger.journal ORDER BY seq")] == list(
        range(1, 61)
    )
    assert ledger.value("SELECT last_seq FROM ledger.books") == 60
    assert ledger.total() == 20 * 8 * GPU_HOUR


def test_recorded_time_increases_strictly_when_the_clock_stands_still_or_jumps_back_a_day(
    ledger: Ledger,
) -> None:
    ledger.append(*run_of(0, HOUR, "w1"))
    ledger.clock.at = NOON - dt.timedelta(days=1)
    ledger.append(*run_of(0, HOUR, "w2"))
    ledger.clock.at = NOON + dt.timedelta(days=1)
    ledger.append(*run_of(0, HOUR, "w3"))
    recorded = [at for (at,) in ledger.rows("SELECT recorded_at FROM ledger.journal ORDER BY seq")]
    microsecond = dt.timedelta(microseconds=1)
    assert recorded[:6] == [NOON + n * microsecond for n in range(6)]
    assert recorded[6:] == [NOON + dt.timedelta(days=1) + n * microsecond for n in range(3)]


def test_a_fact_touches_the_rows_of_its_own_book_only(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR))
    before = ledger.rows("SELECT * FROM ledger.books")
    other = [msgspec.structs.replace(fact, cluster="beta") for fact in (submitted(), started(), ended())]
    ledger.append(*(told(HOUR, fact) for fact in other))
    assert ledger.rows("SELECT * FROM ledger.books WHERE book = 'alpha'") == before
    assert ledger.value("SELECT max(seq) FROM ledger.journal WHERE book = 'beta'") == 3
