"""What the sensor remembers from one tick to the next, and what it asks for. Pure.

A cluster's mark moves on when its days are asked for. Days whose run fails are kept and asked for again, so that a
database that was away for a night, or a gate that somebody has mended, leaves no day behind.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import msgspec

from gpuledger_pipelines.defs.late.touched import Mark, Touched, ranges

AGAIN_AFTER_S = 3_600
"""How long after a run was asked for its days may be asked for again."""


class Outcome(StrEnum):
    """How a run that was asked for stands."""

    AT_WORK = "at work"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Asked:
    """One run: days that follow each other, or the budgets of a period alone.

    Args:
        key: Names it in Dagster; the same key is asked for once.
        first: First UTC day.
        last: Last UTC day.
        period: The period, where budgets alone are to be restated.
    """

    key: str
    first: dt.date
    last: dt.date
    period: str | None = None


@dataclass(frozen=True, slots=True)
class Watched:
    """What is remembered of a cluster.

    Args:
        mark: How far its tables are, once all that was asked for is done.
        asked: Runs that are not known to be done.
        asked_at_s: When the newest of them was asked for.
    """

    mark: Mark | None = None
    asked: tuple[Asked, ...] = ()
    asked_at_s: int = 0


Cursor = dict[str, Watched]


def read(cursor: str | None) -> Cursor:
    """Return what an earlier tick remembered."""
    return msgspec.json.decode(cursor, type=Cursor) if cursor else {}


def write(cursor: Mapping[str, Watched]) -> str:
    """Return what is to be remembered, for Dagster to keep."""
    return msgspec.json.encode(cursor, order="sorted").decode()


def settled(watched: Watched, outcomes: Mapping[str, Outcome]) -> Watched:
    """Forget the runs that are done."""
    return replace(
        watched, asked=tuple(each for each in watched.asked if outcomes.get(each.key) is not Outcome.DONE)
    )


def at_work(watched: Watched, outcomes: Mapping[str, Outcome]) -> list[str]:
    """Return the runs that are queued or running; nothing more is asked for until they end."""
    return [each.key for each in watched.asked if outcomes.get(each.key) is Outcome.AT_WORK]


def due_again(watched: Watched, now_s: int) -> bool:
    """Say whether runs that failed are to be asked for again."""
    return bool(watched.asked) and now_s - watched.asked_at_s >= AGAIN_AFTER_S


def ask(
    cluster: str,
    watched: Watched,
    now: Mark,
    touched: Touched,
    period_days: Mapping[str, dt.date],
    now_s: int,
) -> tuple[Watched, Sequence[Asked]]:
    """Return what is remembered afterwards, and the runs to ask for.

    Args:
        cluster: The cluster.
        watched: What is remembered; its runs have failed, where there are any.
        now: How far the ledger is.
        touched: What has changed since ``watched.mark``.
        period_days: A UTC day of each period in ``touched.periods``.
        now_s: The present; part of the keys, so that what failed can be asked for again.
    """
    days, periods = set(touched.days), dict(period_days)
    if due_again(watched, now_s):
        for each in watched.asked:
            if each.period is None:
                days.update(
                    each.first + dt.timedelta(days=n) for n in range((each.last - each.first).days + 1)
                )
            else:
                periods[each.period] = each.first
        kept: tuple[Asked, ...] = ()
    else:
        kept = watched.asked
    runs = [
        *(Asked(f"{cluster}/{first}/{last}/{now_s}", first, last) for first, last in ranges(days)),
        *(Asked(f"{cluster}/{period}/{now_s}", day, day, period) for period, day in sorted(periods.items())),
    ]
    at_s = now_s if runs else watched.asked_at_s
    return Watched(now, (*kept, *runs), at_s), runs
