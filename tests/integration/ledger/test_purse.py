"""What a hard account may promise at a month's edge: what is still to come counts, and only once."""

import datetime as dt

import msgspec
import pytest
from tests.integration.ledger.books import CLUSTER, GPU_HOUR, HOUR, NOON, Ledger, at, granted, run_of, told
from tests.integration.ledger.test_admission import hard, order

from gpuledger.database.engine import writing
from gpuledger.events.budget import AccountCreated
from gpuledger.kernel.clock import FixedClock, instant, seconds
from gpuledger.ledger.closing import close_period
from gpuledger.ledger.purse import Need, Purse

EDGE_S = at("2026-12-01T00:00:00Z")
NOVEMBER, DECEMBER = "2026-11", "2026-12"


@pytest.fixture
def ready(ledger: Ledger) -> Ledger:
    """``org/vision`` is hard; of its 100 GPU-hours of November it used 64."""
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/vision")))
    hard(ledger)
    ledger.append(*run_of(at("2026-11-10T00:00:00Z"), at("2026-11-10T08:00:00Z")))
    return ledger


def grant(ledger: Ledger, period: str, gpu_hours: int, rollover: str | None, **keys: object) -> None:
    fact = granted("org/vision", period, gpu_hours * GPU_HOUR)
    ledger.append(told(0, msgspec.structs.replace(fact, rollover=rollover, **keys)))


def asked(ledger: Ledger, now_s: int, *hours: int, from_s: int | None = None) -> list[bool]:
    """Ask for whole GPUs over the hours given, one after the other; tell which could be paid for."""
    ledger.clock = FixedClock(instant(now_s))
    with writing(ledger.engine) as writer:
        purse = Purse(writer, CLUSTER, now_s, ledger.calendar)
        start_s = now_s if from_s is None else from_s
        needs = (Need("org/vision", 1000, None, (start_s, start_s + h * HOUR)) for h in hours)
        return [purse.shortfall(need) is None for need in needs]


def close(ledger: Ledger, period: str) -> None:
    with writing(ledger.engine) as writer:
        close_period(writer, CLUSTER, period, "ada", clock=ledger.clock, calendar=ledger.calendar)


@pytest.mark.parametrize(
    ("rollover", "left"), [("all", 36), ("max 10", 10), ("min 50", 50), ("none", 0), (None, 0)]
)
def test_after_the_edge_what_the_close_will_bring_is_there_before_the_close(
    ready: Ledger, rollover: str | None, left: int
) -> None:
    grant(ready, NOVEMBER, 100, rollover)
    now_s = EDGE_S + 2 * HOUR
    assert asked(ready, now_s, left + 1, left, 1) == [False, True, False]


def test_once_it_is_closed_it_does_not_come_again(ready: Ledger) -> None:
    grant(ready, NOVEMBER, 100, "all")
    ready.clock = FixedClock(NOON)
    close(ready, NOVEMBER)
    assert asked(ready, seconds(NOON), 37) == [False]
    assert asked(ready, seconds(NOON), 36) == [True]


def test_a_debt_is_owed_before_the_close_too(ready: Ledger) -> None:
    grant(ready, NOVEMBER, 60, "all")
    grant(ready, DECEMBER, 10, None)
    assert asked(ready, EDGE_S + HOUR, 7) == [False]
    assert asked(ready, EDGE_S + HOUR, 6) == [True]


def test_over_the_edge_what_november_pays_is_not_carried_into_december(ready: Ledger) -> None:
    grant(ready, NOVEMBER, 100, "all")
    before_s = EDGE_S - 10 * HOUR
    assert asked(ready, before_s, 37) == [False]
    assert asked(ready, before_s, 20, 16) == [True, True]
    assert asked(ready, before_s, 20, 17) == [True, False]


def test_what_is_not_carried_over_is_not_owed_for_it(ready: Ledger) -> None:
    grant(ready, NOVEMBER, 100, None)
    grant(ready, DECEMBER, 5, None)
    assert asked(ready, EDGE_S - 10 * HOUR, 15) == [True]
    assert asked(ready, EDGE_S - 10 * HOUR, 16) == [False]


def test_two_months_without_a_close_are_carried_one_through_the_other(ready: Ledger) -> None:
    grant(ready, NOVEMBER, 100, "max 30")
    grant(ready, DECEMBER, 5, "all")
    january = seconds(dt.datetime(2027, 1, 2, tzinfo=dt.UTC))
    assert asked(ready, january, 36) == [False]
    assert asked(ready, january, 35) == [True]


def test_what_lapses_at_midnight_pays_for_nothing_after_it(ready: Ledger) -> None:
    twelfth = dt.datetime(2026, 11, 12, tzinfo=dt.UTC)
    grant(ready, NOVEMBER, 74, None, expires_at=twelfth)
    grant(ready, NOVEMBER, 3, None)
    evening_s = seconds(twelfth) - 4 * HOUR
    assert asked(ready, evening_s, 8) == [False]
    assert asked(ready, evening_s, 7) == [True]
    assert asked(ready, evening_s, 6, 6) == [True, False]
    assert asked(ready, evening_s, 6, 5, 4) == [True, True, False]
    assert asked(ready, evening_s - 4 * HOUR, 4, 4, 2, 2) == [True, True, True, True]


def test_a_lot_that_goes_on_with_its_own_expiry_pays_until_then(ready: Ledger) -> None:
    fifth = dt.datetime(2026, 12, 5, tzinfo=dt.UTC)
    grant(ready, NOVEMBER, 100, None, expires_at=fifth)
    assert asked(ready, seconds(fifth) - 20 * HOUR, 19) == [True]
    assert asked(ready, seconds(fifth) - HOUR, 8) == [False]
    assert asked(ready, seconds(fifth) + HOUR, 1) == [False]
