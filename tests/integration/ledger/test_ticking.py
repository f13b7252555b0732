"""The book's clock moves by full hours, forward only, and brings lost ends and seals along in one batch."""

import threading

import pytest
from tests.integration.ledger.books import CLUSTER, HOUR, NOON, Ledger, started, submitted, told
from tests.integration.ledger.samples import sampled

from gpuledger.database.engine import reading, writing
from gpuledger.kernel.errors import Refused
from gpuledger.ledger import queries, sealing, ticking
from gpuledger.ledger.rebuild import check
from gpuledger.ledger.ticking import Ticked

NOW = int(NOON.timestamp())
"""The clock of a test's ledger stands at 2026-12-01T12:00:00Z."""


def tick(ledger: Ledger, at_s: int = NOW) -> Ticked:
    with writing(ledger.engine) as writer:
        return ticking.tick(writer, CLUSTER, at_s, clock=ledger.clock, calendar=ledger.calendar)


def ticked_s(ledger: Ledger) -> int | None:
    with reading(ledger.engine) as reader:
        return queries.ticks(reader).get(CLUSTER)


def types(ledger: Ledger) -> list[str]:
    return [name for (name,) in ledger.rows("SELECT type FROM ledger.journal ORDER BY seq")]


def test_a_tick_floors_to_the_hour_and_is_journalled_once(ledger: Ledger) -> None:
    assert ticked_s(ledger) is None
    assert tick(ledger, NOW - 1) == Ticked(CLUSTER, NOW - HOUR)
    assert tick(ledger, NOW - HOUR) == Ticked(CLUSTER, NOW - HOUR, repeated=True)
    assert tick(ledger, NOW - 9 * HOUR) == Ticked(CLUSTER, NOW - HOUR, repeated=True)
    assert ticked_s(ledger) == NOW - HOUR
    rows = ledger.rows("SELECT type, event_id, source, effective_at, body->>'cluster' FROM ledger.journal")
    assert [(*row[:3], int(row[3].timestamp()), row[4]) for row in rows] == [
        ("ledger.ticked", "tick/alpha/2026-12-01T11:00:00Z", "gpuledger/ticks", NOW - HOUR, CLUSTER)
    ]


def test_lost_ends_and_seals_come_before_the_tick_that_brings_them(ledger: Ledger) -> None:
    ledger.append(told(0, submitted(time_limit_s=HOUR)), told(NOW - 9 * HOUR, started()))
    sampled(ledger, NOW - 9 * HOUR, NOW - 8 * HOUR + 600)
    assert tick(ledger) == Ticked(CLUSTER, NOW, lost_ends=1, sealed_hours=2)
    assert types(ledger)[2:] == ["workload.ended", "telemetry.sealed", "telemetry.sealed", "ledger.ticked"]
    assert ledger.total() == HOUR * 8000


def test_the_next_tick_seals_the_next_hours_and_those_with_late_samples(ledger: Ledger) -> None:
    sampled(ledger, NOW - 300 * HOUR, NOW - 299 * HOUR)
    sampled(ledger, NOW - 20 * HOUR, NOW - 19 * HOUR - 900)
    assert tick(ledger, NOW - 2 * HOUR).sealed_hours == 2  # all there is, at first
    sampled(ledger, NOW - 19 * HOUR - 900, NOW - 19 * HOUR)
    sampled(ledger, NOW - 250 * HOUR, NOW - 249 * HOUR)  # more than a week late
    sampled(ledger, NOW - HOUR, NOW + HOUR)
    assert tick(ledger).sealed_hours == 2
    assert types(ledger).count("telemetry.sealed") == 4


def test_a_clock_that_stood_still_for_weeks_catches_up_on_all_of_them(ledger: Ledger) -> None:
    tick(ledger, NOW - 500 * HOUR)
    sampled(ledger, NOW - 450 * HOUR, NOW - 449 * HOUR)
    assert tick(ledger).sealed_hours == 1


@pytest.mark.parametrize("at_s", [NOW + 1, NOW + HOUR, -1, 2**50])
def test_the_clock_keeps_to_what_has_been(ledger: Ledger, at_s: int) -> None:
    with pytest.raises(Refused, match="keeps to what has been"):
        tick(ledger, at_s)
    assert types(ledger) == []


def test_two_that_tick_at_once_tick_once(ledger: Ledger) -> None:
    sampled(ledger, NOW - HOUR, NOW)
    done: list[Ticked] = []
    threads = [threading.Thread(target=lambda: done.append(tick(ledger))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.repeated for one in done) == [False, True, True, True, True]
    assert types(ledger) == ["telemetry.sealed", "ledger.ticked"]


def test_the_clock_stands_at_the_latest_tick_whichever_was_journalled_last(ledger: Ledger) -> None:
    for at_s in (NOW, NOW - 3 * HOUR):
        ledger.append(ticking.tick_event(CLUSTER, at_s))
    assert ticked_s(ledger) == NOW


def test_a_ticked_book_is_rebuilt_the_same(ledger: Ledger) -> None:
    ledger.append(told(0, submitted(time_limit_s=HOUR)), told(NOW - 9 * HOUR, started()))
    sampled(ledger, NOW - 9 * HOUR, NOW - 8 * HOUR)
    tick(ledger)
    with reading(ledger.engine) as reader:
        assert check(reader, ledger.calendar).ok


def test_nobody_waits_while_a_week_of_samples_is_looked_through(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampled(ledger, NOW - HOUR, NOW)
    looked: list[int] = []

    def look(*arguments: object) -> list[int]:
        found = stale_hours(*arguments)  # type: ignore[arg-type]
        looked.extend(found)
        with reading(ledger.engine) as reader:  # nobody holds the book
            assert reader.exec_driver_sql(
                "SELECT pg_try_advisory_xact_lock(hashtextextended('alpha', 0))"
            ).scalar_one()
        ledger.append(told(NOW - 300, submitted()))
        return found

    stale_hours = sealing.stale_hours
    monkeypatch.setattr(sealing, "stale_hours", look)
    assert tick(ledger).sealed_hours == 1
    assert looked == [NOW]
    assert types(ledger) == ["workload.submitted", "telemetry.sealed", "ledger.ticked"]
