"""Closing a period: what expires, what goes on, and late facts that find it closed."""

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    NOON,
    Ledger,
    at,
    granted,
    registered,
    run_of,
    started,
    submitted,
    told,
)
from tests.integration.ledger.samples import sampled
from tests.integration.ledger.test_admission import is_sound, order

from gpuledger.database.engine import reading, writing
from gpuledger.events.budget import AccountCreated, AdjustmentPosted
from gpuledger.events.closing import LedgerTicked, PeriodClosing
from gpuledger.events.fields import GPUS_MAX
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock
from gpuledger.kernel.errors import Refused
from gpuledger.ledger import sealing
from gpuledger.ledger.balances import Balance, BalanceQuery, balance
from gpuledger.ledger.closing import Close, close_period, reopen_period
from gpuledger.ledger.periods import PeriodStatus, open_period, periods
from gpuledger.ledger.ticking import tick

OCTOBER, NOVEMBER, DECEMBER = "2026-10", "2026-11", "2026-12"
IN_NOVEMBER = at("2026-11-10T00:00:00Z")


@pytest.fixture
def funded(ledger: Ledger) -> Ledger:
    """``org/vision`` has 100 GPU-hours in November, of which 30 may go on, and 50 in December."""
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/vision")))
    ledger.append(
        told(0, lot(NOVEMBER, 100, rollover="max 30")),
        told(0, granted("org/vision", DECEMBER, 50 * GPU_HOUR)),
    )
    return ledger


def lot(period: str, gpu_hours: int, **keys: Any) -> Any:  # noqa: ANN401
    return msgspec.structs.replace(granted("org/vision", period, gpu_hours * GPU_HOUR), **keys)


def close(ledger: Ledger, period: str = NOVEMBER) -> Close:
    with writing(ledger.engine) as writer:
        return close_period(writer, CLUSTER, period, "ada", clock=ledger.clock, calendar=ledger.calendar)


def reopen(ledger: Ledger, period: str = NOVEMBER) -> int:
    with writing(ledger.engine) as writer:
        return reopen_period(
            writer, CLUSTER, period, "ada", "a late invoice", clock=ledger.clock, calendar=ledger.calendar
        )


def stands(ledger: Ledger, period: str, *, as_known: bool = False) -> dict[str, int]:
    """Return what a balance says, in GPU-hours, without what is 0."""
    with reading(ledger.engine) as reader:
        query = BalanceQuery(CLUSTER, period, as_known=as_known)
        found: Balance = balance(reader, "org/vision", query, at(NOON.isoformat()), ledger.calendar)
    names = ("granted", "rolled_over", "charged", "credited", "expired", "available")
    amounts = {name: getattr(found, f"{name}_gpu_ms") for name in names}
    assert all(amount % GPU_HOUR == 0 for amount in amounts.values())
    return {name: amount // GPU_HOUR for name, amount in amounts.items() if amount}


def test_what_is_left_expires_and_the_rule_says_what_goes_on(funded: Ledger) -> None:
    funded.append(*run_of(IN_NOVEMBER, IN_NOVEMBER + 5 * HOUR))
    found = close(funded)
    assert (found.version, found.repeated) == (1, False)
    assert stands(funded, NOVEMBER) == {"granted": 100, "charged": 40, "expired": 60}
    assert stands(funded, DECEMBER) == {"granted": 80, "rolled_over": 30, "available": 80}
    assert is_sound(funded)


def test_a_close_that_stopped_between_its_two_rows_goes_on_from_there(funded: Ledger) -> None:
    funded.append(*run_of(IN_NOVEMBER, IN_NOVEMBER + 5 * HOUR))
    stopped = PeriodClosing(cluster=CLUSTER, period=NOVEMBER, version=1, by="grace")
    funded.append(told(at("2026-12-01T00:00:00Z"), stopped))
    closing_seq = funded.value(
        "SELECT closing_seq FROM ledger.periods WHERE period = :period", period=NOVEMBER
    )
    found = close(funded)
    assert (found.version, found.closing_seq, found.repeated) == (1, closing_seq, False)
    assert funded.value("SELECT count(*) FROM ledger.journal WHERE type = 'period.closing'") == 1
    assert stands(funded, NOVEMBER) == {"granted": 100, "charged": 40, "expired": 60}
    assert stands(funded, DECEMBER) == {"granted": 80, "rolled_over": 30, "available": 80}
    assert is_sound(funded)


def test_an_overrun_stays_with_the_account_as_a_debt(funded: Ledger) -> None:
    funded.append(*run_of(IN_NOVEMBER, IN_NOVEMBER + 15 * HOUR))
    close(funded)
    assert stands(funded, NOVEMBER) == {"granted": 100, "charged": 120, "expired": -20}
    assert stands(funded, DECEMBER) == {"granted": 30, "rolled_over": -20, "available": 30}
    assert is_sound(funded)


def test_a_close_charges_runs_that_go_on_up_to_the_edge(funded: Ledger) -> None:
    eve = at("2026-11-30T20:00:00Z")
    funded.append(told(eve, submitted()), told(eve, started()))
    close(funded)
    assert stands(funded, NOVEMBER) == {"granted": 100, "charged": 32, "expired": 68}
    assert stands(funded, DECEMBER)["charged"] == 96
    assert is_sound(funded)


def test_a_late_fact_leaves_the_closed_period_as_it_is_and_reaches_the_open_one(funded: Ledger) -> None:
    funded.append(*run_of(IN_NOVEMBER, IN_NOVEMBER + 5 * HOUR))
    close(funded)
    sealed = stands(funded, NOVEMBER)
    funded.append(*run_of(IN_NOVEMBER, IN_NOVEMBER + 5 * HOUR, "late"))
    assert stands(funded, NOVEMBER) == sealed
    # 40 more were charged and 40 fewer were left: 20 of them would have gone on, instead of 30.
    assert stands(funded, NOVEMBER, as_known=True) == {"granted": 100, "charged": 80, "expired": 20}
    assert stands(funded, DECEMBER, as_known=True) == {"granted": 70, "rolled_over": 20, "available": 70}
    assert stands(funded, DECEMBER)["available"] == 70
    assert is_sound(funded)


def test_sums_over_periods_do_not_depend_on_the_moment_of_the_close(funded: Ledger) -> None:
    funded.append(*run_of(IN_NOVEMBER, IN_NOVEMBER + 5 * HOUR))
    close(funded)
    funded.append(*run_of(IN_NOVEMBER + HOUR, IN_NOVEMBER + 15 * HOUR, "late"))
    for name in ("charged", "expired", "available"):
        sealed, known = (
            sum(stands(funded, p, as_known=basis).get(name, 0) for p in (NOVEMBER, DECEMBER))
            for basis in (False, True)
        )
        assert sealed == known


def test_late_facts_reach_through_several_closed_periods(ledger: Ledger) -> None:
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/vision")))
    ledger.append(
        told(0, lot(OCTOBER, 100, rollover="all")),
        told(0, lot(NOVEMBER, 10)),
        told(0, lot(DECEMBER, 10)),
    )
    close(ledger, OCTOBER)
    close(ledger, NOVEMBER)
    assert stands(ledger, DECEMBER) == {"granted": 110, "rolled_over": 100, "available": 110}
    in_october = at("2026-10-10T00:00:00Z")
    ledger.append(*run_of(in_october, in_october + 5 * HOUR))
    assert stands(ledger, NOVEMBER) == {"granted": 110, "rolled_over": 100, "expired": 110}
    assert stands(ledger, DECEMBER)["available"] == 70
    assert stands(ledger, DECEMBER, as_known=True) == {"granted": 70, "rolled_over": 60, "available": 70}
    assert is_sound(ledger)


def test_a_lot_lapses_within_its_period_and_late_use_of_its_days_still_finds_it(ledger: Ledger) -> None:
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/vision")))
    lapse = dt.datetime(2026, 11, 15, tzinfo=dt.UTC)
    ledger.append(told(0, lot(NOVEMBER, 40, expires_at=lapse)), told(0, lot(NOVEMBER, 60)))
    ledger.append(*run_of(IN_NOVEMBER, IN_NOVEMBER + HOUR))
    ledger.append(told(at("2026-11-15T00:00:00Z"), LedgerTicked(cluster=CLUSTER)))
    assert stands(ledger, NOVEMBER) == {"granted": 100, "charged": 8, "expired": 32, "available": 60}
    ledger.append(*run_of(IN_NOVEMBER, IN_NOVEMBER + 2 * HOUR, "late"))
    assert stands(ledger, NOVEMBER) == {"granted": 100, "charged": 24, "expired": 16, "available": 60}
    after = at("2026-11-20T00:00:00Z")
    ledger.append(*run_of(after, after + HOUR, "after"))
    assert stands(ledger, NOVEMBER)["available"] == 52
    assert is_sound(ledger)


def test_a_reopened_period_takes_bookings_and_closes_as_another_version(funded: Ledger) -> None:
    close(funded)
    assert reopen(funded) == 1
    assert stands(funded, NOVEMBER) == {"granted": 100, "available": 100}
    assert stands(funded, DECEMBER) == {"granted": 50, "available": 50}
    funded.append(*run_of(IN_NOVEMBER, IN_NOVEMBER + 10 * HOUR))
    assert close(funded).version == 2
    assert stands(funded, NOVEMBER) == {"granted": 100, "charged": 80, "expired": 20}
    assert stands(funded, DECEMBER) == {"granted": 70, "rolled_over": 20, "available": 70}
    assert is_sound(funded)


def test_where_periods_stood_at_a_recorded_time_is_said_for_ever(funded: Ledger) -> None:
    def told_of_periods(as_of: dt.datetime | None = None) -> list[PeriodStatus]:
        with reading(funded.engine) as reader:
            return periods(reader, CLUSTER, as_of)

    def open_january() -> None:
        funded.append(told(0, registered("h1", 8)))
        with writing(funded.engine) as writer:
            open_period(writer, CLUSTER, "2027-01", clock=funded.clock, calendar=funded.calendar)

    seen = [(NOON - dt.timedelta(days=1), list[PeriodStatus]())]
    for step in (
        lambda: None,
        open_january,
        lambda: close(funded),
        lambda: reopen(funded),
        lambda: close(funded),
    ):
        step()
        seen.append((funded.clock.at, told_of_periods()))
        funded.clock = FixedClock(funded.clock.at + dt.timedelta(hours=1))
    assert [[(p.period, p.state, p.version) for p in told_then[:1]] for _, told_then in seen] == [
        [], [(NOVEMBER, "unopened", 0)], [(NOVEMBER, "unopened", 0)], [(NOVEMBER, "closed", 1)],
        [(NOVEMBER, "unopened", 1)], [(NOVEMBER, "closed", 2)],
    ]  # fmt: skip
    assert [(p.period, p.state) for p in seen[2][1]][1:] == [(DECEMBER, "unopened"), ("2027-01", "open")]
    assert [told_of_periods(at_ + dt.timedelta(minutes=30)) for at_, _ in seen] == [then for _, then in seen]


def test_what_came_late_before_a_reopening_leaves_the_second_statement_whole(funded: Ledger) -> None:
    close(funded)
    funded.append(*run_of(IN_NOVEMBER, IN_NOVEMBER + HOUR, "late"))
    reopen(funded)
    close(funded)
    assert stands(funded, NOVEMBER) == {"granted": 100, "expired": 100}
    assert stands(funded, NOVEMBER, as_known=True) == {"granted": 100, "charged": 8, "expired": 92}
    assert is_sound(funded)


def test_where_days_begin_at_half_past_a_close_ticks_once_at_the_edge_and_finds_what_a_tick_finds(
    ledger: Ledger,
) -> None:
    ledger.calendar = Calendar("Asia/Kolkata")
    edge = at("2026-11-30T18:30:00Z")
    ledger.append(told(0, submitted(time_limit_s=HOUR)), told(edge - 9 * HOUR, started()))
    ledger.append(told(edge - HOUR, submitted("w2")), told(edge - HOUR, started("w2", hosts=["h2"])))
    sampled(ledger, edge - 2 * HOUR, edge - 1800, "w2/r1")
    close(ledger)
    rows = ledger.rows("SELECT type, effective_at, event_id FROM ledger.journal ORDER BY seq OFFSET 4")
    assert [(type_, int(moment.timestamp()) - edge) for type_, moment, _ in rows[:6]] == [
        ("workload.ended", -8 * HOUR),
        ("telemetry.sealed", -1800 - HOUR),
        ("telemetry.sealed", -1800),
        ("ledger.ticked", 0),
        ("period.closing", 0),
        ("period.closed", 0),
    ]
    assert rows[3][2] == "tick/alpha/2026-11-30T18:30:00Z"
    assert ledger.net() == {
        ("charge", "org/vision", "w1/r1", "2026-11-30"): HOUR * 8000,
        ("charge", "org/vision", "w2/r1", "2026-11-30"): HOUR * 8000,
    }
    assert is_sound(ledger)


def test_a_run_that_no_column_holds_any_more_does_not_keep_a_period_from_being_closed(ledger: Ledger) -> None:
    """Nor where the clock stands at the last full hour before the edge, half an hour from it."""
    ledger.calendar = Calendar("Asia/Kolkata")
    edge, size = at("2026-11-30T18:30:00Z"), GPUS_MAX * 1000
    held_s = (2**63 - 1) // (4 * size * 1000)
    began = edge - 450 - held_s
    for name in ("w1", "w2", "w3", "w4"):
        ledger.append(
            told(began, submitted(name, gpus_milli=size)), told(began, started(name, gpus_milli=size))
        )
    with writing(ledger.engine) as writer:
        found = tick(writer, CLUSTER, edge - 1, clock=ledger.clock, calendar=ledger.calendar)
    assert (found.ticked_s, found.put_aside) == (edge - 1800, 0)
    assert close(ledger).version == 1
    assert ledger.rows("SELECT workload FROM ledger.journal WHERE source = 'gpuledger/overflows'") == [
        ("w1",)
    ]
    assert is_sound(ledger)


def test_nobody_waits_while_a_close_looks_through_a_week_of_samples(
    funded: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []

    def look(*arguments: object) -> list[int]:
        funded.append(told(IN_NOVEMBER, submitted(f"w{len(looked)}")))  # would wait for ever
        looked.append(1)
        return stale_hours(*arguments)  # type: ignore[arg-type]

    stale_hours = sealing.stale_hours
    monkeypatch.setattr(sealing, "stale_hours", look)
    close(funded)
    assert close(funded).repeated
    assert looked == [1]


def test_of_many_closers_one_closes_and_all_get_one_answer(funded: Ledger) -> None:
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: close(funded), range(8)))
    assert sum(not f.repeated for f in found) == 1
    assert len({f._replace(repeated=True) for f in found}) == 1


def test_what_cannot_be_closed_is_refused(funded: Ledger) -> None:
    with pytest.raises(Refused, match="is not over before 2027-01-01"):
        close(funded, DECEMBER)
    funded.clock = FixedClock(NOON + dt.timedelta(days=60))
    with pytest.raises(Refused, match="2026-11 of alpha is still open"):
        close(funded, DECEMBER)
    with pytest.raises(Refused, match="is open, not closed"):
        reopen(funded, DECEMBER)


def test_an_adjustment_of_a_closed_period_is_booked_in_the_open_one(funded: Ledger) -> None:
    funded.append(*run_of(IN_NOVEMBER, IN_NOVEMBER + 5 * HOUR))
    close(funded)
    adjusted = AdjustmentPosted(
        account="org/vision",
        cluster=CLUSTER,
        period=NOVEMBER,
        code="charge",
        gpu_ms=-35 * GPU_HOUR,
        reason="r",
        by="b",
    )
    funded.append(told(at("2026-12-01T10:00:00Z"), adjusted))
    assert stands(funded, NOVEMBER, as_known=True) == {"granted": 100, "charged": 5, "expired": 95}
    assert stands(funded, NOVEMBER) == {"granted": 100, "charged": 40, "expired": 60}
    assert stands(funded, DECEMBER)["available"] == 80
    assert is_sound(funded)
