"""What a hard account may promise at a month's edge: what is still to come counts, and only once."""

import datetime as dt

import msgspec
import pytest
from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    NOON,
    Ledger,
    at,
    ended,
    granted,
    registered,
    run_of,
    started,
    submitted,
    told,
)
from tests.integration.ledger.test_admission import ask, hard, is_sound, order

from gpuledger.database.engine import writing
from gpuledger.events.budget import AccountCreated, AdjustmentPosted, OverdraftSet, Transferred
from gpuledger.events.closing import LedgerTicked
from gpuledger.kernel.clock import FixedClock, instant, seconds
from gpuledger.kernel.errors import Refused
from gpuledger.ledger.closing import close_period
from gpuledger.ledger.commands import Command, execute
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


def give(ledger: Ledger, gpu_hours: int, period: str = NOVEMBER) -> None:
    command(ledger, Transferred(
        account="org/vision", to="org/speech", cluster=CLUSTER, period=period, gpu_ms=gpu_hours * GPU_HOUR, reason="t",
        by="t",
    ))  # fmt: skip


def command(ledger: Ledger, command: Command) -> None:
    with writing(ledger.engine) as writer:
        execute(
            writer,
            command,
            key=f"{type(command).__name__}{command.gpu_ms}",
            clock=ledger.clock,
            calendar=ledger.calendar,
        )


def left(ledger: Ledger, period: str, now: str) -> int:
    return ledger.balance("org/vision", period, now=now).own_available_gpu_ms // GPU_HOUR


@pytest.fixture
def admitted(ready: Ledger) -> Ledger:
    """On the first of December 8 GPUs are admitted for an hour, on what November's close will bring: 36 GPU-hours."""
    order(ready, AccountCreated(account="org/speech"))
    grant(ready, NOVEMBER, 100, "all")
    now_s = EDGE_S + 2 * HOUR
    ready.clock = FixedClock(instant(now_s))
    ready.append(told(now_s, submitted("w2", minimum_runtime_s=HOUR)))
    assert ask(ready, "w2").decision.klass == "allocated"
    ready.append(told(now_s, started("w2")), told(now_s + HOUR, ended("w2")))
    return ready


def test_what_an_admission_counted_on_is_not_given_away(admitted: Ledger) -> None:
    with pytest.raises(
        Refused, match=r"is hard, and 1\.000 GPU-hours .* set aside in 2026-12 would be paid by nothing"
    ):
        give(admitted, 29)
    give(admitted, 28)
    admitted.clock = FixedClock(NOON)
    close(admitted, NOVEMBER)
    assert left(admitted, DECEMBER, "2026-12-01T12:00:00Z") == 0
    assert is_sound(admitted)


def test_what_an_admission_counted_on_is_not_taken_back_either(admitted: Ledger) -> None:
    taken = AdjustmentPosted(
        account="org/vision",
        cluster=CLUSTER,
        period=NOVEMBER,
        code="grant",
        gpu_ms=-29 * GPU_HOUR,
        reason="t",
        by="t",
    )
    with pytest.raises(Refused, match="would be paid by nothing"):
        command(admitted, taken)
    command(admitted, msgspec.structs.replace(taken, gpu_ms=-28 * GPU_HOUR))
    with pytest.raises(Refused, match="would be paid by nothing"):
        command(admitted, msgspec.structs.replace(taken, gpu_ms=-GPU_HOUR))


def test_what_a_closed_november_brought_is_not_taken_back_there(admitted: Ledger) -> None:
    admitted.clock = FixedClock(NOON)
    close(admitted, NOVEMBER)
    taken = AdjustmentPosted(
        account="org/vision",
        cluster=CLUSTER,
        period=NOVEMBER,
        code="grant",
        gpu_ms=-29 * GPU_HOUR,
        reason="t",
        by="t",
    )
    with pytest.raises(Refused, match="would be paid by nothing"):
        command(admitted, taken)
    command(admitted, msgspec.structs.replace(taken, gpu_ms=-28 * GPU_HOUR))
    assert left(admitted, DECEMBER, "2026-12-01T12:00:00Z") == 0


def test_of_a_soft_account_a_correction_may_leave_a_debt(admitted: Ledger) -> None:
    order(admitted, OverdraftSet(account="org/vision", overdraft="soft", reason="t", by="t"), at_s=1)
    give(admitted, 36)
    assert left(admitted, DECEMBER, "2026-12-01T12:00:00Z") == -8


def test_a_most_that_is_carried_over_leaves_the_rest_of_november_free(ready: Ledger) -> None:
    """Of 36 GPU-hours 10 are carried over: 26 pay for what November still asks, and take nothing from December."""
    grant(ready, NOVEMBER, 100, "max 10")
    assert asked(ready, EDGE_S - 4 * HOUR, 8, 10, 4, 5) == [True, True, True, False]


def test_what_the_opening_was_counted_on_to_grant_is_granted_with_the_admission(ready: Ledger) -> None:
    """A grant that somebody orders later comes on top: it takes nothing away from what was promised."""
    grant(ready, NOVEMBER, 68, None)
    ready.append(told(0, registered("h1", 8)))
    now_s = EDGE_S - HOUR // 2
    ready.clock = FixedClock(instant(now_s))
    ready.append(told(now_s, submitted("w2", minimum_runtime_s=HOUR)))
    assert ask(ready, "w2").decision.klass == "allocated"
    command(ready, granted("org/vision", DECEMBER, GPU_HOUR))
    assert left(ready, DECEMBER, "2026-11-30T23:30:00Z") == 8 * 31 * 24 - 4 + 1


def test_what_ran_since_the_tick_is_not_promised_again(ready: Ledger) -> None:
    grant(ready, NOVEMBER, 64, None)
    grant(ready, DECEMBER, 20, None)
    ready.append(told(EDGE_S, LedgerTicked(cluster=CLUSTER)))
    ready.append(told(EDGE_S, submitted("w2")), told(EDGE_S, started("w2", gpus_milli=12_000)))
    assert asked(ready, EDGE_S + HOUR, 9) == [False]
    assert asked(ready, EDGE_S + HOUR, 8) == [True]
