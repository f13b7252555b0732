"""What accounts will have been delivered when the period ends that is running."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from gpuledger.kernel.calendar import Calendar
from gpuledger_pipelines.declaring import warehouse_asset
from gpuledger_pipelines.defs.budget.assets import budget_vs_actual, periods_touched
from gpuledger_pipelines.defs.forecast.checks import FORECAST
from gpuledger_pipelines.forecasting import LEAST_DAYS, MOST_DAYS, NotFittedError, Outlook, outlook
from gpuledger_pipelines.gate import PERIODS
from gpuledger_pipelines.partitions import Span
from gpuledger_pipelines.resources import Rewriting
from gpuledger_pipelines.statements import statement

OVER = "the period is over: nothing more is delivered in it"
NOT_BEGUN = "the period has not begun"
NOT_FITTED = "no model fits the days that are known"


@dataclass(frozen=True, slots=True)
class History:
    """What an account was delivered by day, before credits, weighted as its budget is.

    Args:
        days: gpu_ms of each whole day before today, from the first on which it had a GPU.
        today_gpu_ms: What of today is over brought.
    """

    days: Sequence[int] = ()
    today_gpu_ms: int = 0


@dataclass(frozen=True, slots=True)
class Line:
    """What is foreseen of one account and period.

    Args:
        rest: What is still to come; None where nobody can tell.
        history_day_count: Whole days that the account's history has.
        left_day_count: Days of the period that are not over, today among them.
        reason: Why there is no ``rest``.
    """

    rest: Outlook | None
    history_day_count: int
    left_day_count: int
    reason: str | None


@warehouse_asset(group="budget", gate=FORECAST, deps=[budget_vs_actual], ledger=("segments", "rates"))
def forecast(rewriting: Rewriting, span: Span) -> int:
    """What accounts will have been delivered when the period ends, with a band; of periods that the range touches."""
    calendar = rewriting.calendar()
    periods = periods_touched(calendar, span)["periods"]
    binds = {**span.binds, "first_period": periods[0], "last_period": periods[-1]}
    rewriting.delete(PERIODS, binds)
    asked = rewriting.connection.execute(sa.text(statement("forecast/accounts")), binds).all()
    histories = known_days(rewriting, calendar, span) if runs_now(calendar, span) in periods else {}
    lines = [
        line(calendar, span.now_s, period, histories.get(account, History())) for period, account in asked
    ]
    return rewriting.insert(
        "forecast/forecast",
        {
            **binds,
            "of_periods": [period for period, _ in asked],
            "accounts": [account for _, account in asked],
            "lows": [each.rest and each.rest.low_gpu_ms for each in lines],
            "middles": [each.rest and each.rest.middle_gpu_ms for each in lines],
            "highs": [each.rest and each.rest.high_gpu_ms for each in lines],
            "histories": [each.history_day_count for each in lines],
            "left_overs": [each.left_day_count for each in lines],
            "reasons": [each.reason for each in lines],
        },
    )


def runs_now(calendar: Calendar, span: Span) -> str:
    """Return the period that holds the run's present."""
    return calendar.period_of(calendar.day_of(span.now_s))


def known_days(rewriting: Rewriting, calendar: Calendar, span: Span) -> dict[str, History]:
    """Return account -> what it was delivered by day before the run's present, for the last half a year."""
    today = calendar.day_of(span.now_s)
    edges = [calendar.day_start_s(today + dt.timedelta(days=n)) for n in range(-MOST_DAYS, 2)]
    binds = {**span.binds, "history_s": edges[0], "starts": edges[:-1], "ends": edges[1:]}
    found: dict[str, dict[int, int]] = {}
    for account, number, gpu_ms in rewriting.connection.execute(
        sa.text(statement("forecast/history")), binds
    ):
        found.setdefault(account, {})[number] = gpu_ms
    last = MOST_DAYS + 1  # today
    return {
        account: History([days.get(n, 0) for n in range(min(days), last)], days.get(last, 0))
        for account, days in found.items()
    }


def line(calendar: Calendar, now_s: int, period: str, history: History) -> Line:
    """Return what is foreseen of an account with this history in a period, at an instant."""
    first, last = calendar.days_of(period)
    today = calendar.day_of(now_s)
    if today > last:
        return Line(None, 0, 0, OVER)
    if today < first:
        return Line(None, 0, (last - first).days + 1, NOT_BEGUN)
    left, known = (last - today).days + 1, len(history.days)
    if known < LEAST_DAYS:
        return Line(None, known, left, f"{known} whole days are known, and a forecast needs {LEAST_DAYS}")
    try:
        return Line(outlook(history.days, left, history.today_gpu_ms), known, left, None)
    except NotFittedError:
        return Line(None, known, left, NOT_FITTED)


ASSETS = (forecast,)
