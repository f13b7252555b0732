"""The digest of a week: which week it is time to tell of, whom it is about, and its words. Pure."""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gpuledger.kernel.accounts import lineage, parent
from gpuledger.kernel.amounts import people_gpu_hours
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import seconds
from gpuledger.notify.payloads import DigestRow, WeeklyDigest
from gpuledger.notify.words import Table, Text

HOUR = 7
"""The hour of Monday, by the organisation's clock, from which on the week before is told of."""

_WEEK = dt.timedelta(days=7)
_ALL = 100


class Week(NamedTuple):
    """A week of the organisation's calendar.

    Args:
        name: As ISO 8601 numbers it, such as 2026-W49.
        monday: Its first day.
        end: The Monday after it.
    """

    name: str
    monday: dt.date
    end: dt.date


def last_week(calendar: Calendar, now: dt.datetime) -> Week:
    """Return the newest week that it is time to tell of: the one that ended last, but for Monday's first hours.

    Args:
        calendar: The organisation's days.
        now: The present.
    """
    today = calendar.day_of(seconds(now) - HOUR * 3600)
    end = today - dt.timedelta(days=today.weekday())
    year, number, _ = (end - _WEEK).isocalendar()
    return Week(f"{year}-W{number:02d}", end - _WEEK, end)


@dataclass(slots=True)
class Sums:
    """What an account comes to, all below it counted; amounts in gpu_ms.

    Args:
        owed: None where it is not known of some hour.
    """

    given: int = 0
    spent: int = 0
    owed: int | None = 0
    delivered: int = 0
    idle: int = 0
    squatted: int = 0

    def add(self, **amounts: int | None) -> None:
        """Add amounts by name; one that is not known makes its sum unknown."""
        for name, amount in amounts.items():
            before = getattr(self, name)
            setattr(self, name, None if before is None or amount is None else before + amount)


def by_node(leaves: Iterable[tuple[str, Mapping[str, int | None]]]) -> dict[str, Sums]:
    """Return each account, and each above it, with the sums of what is below it.

    Args:
        leaves: Account and amounts, in any order and as often as there are any.
    """
    found: dict[str, Sums] = {}
    for account, amounts in leaves:
        for node in lineage(account):
            found.setdefault(node, Sums()).add(**amounts)
    return found


def rows_of(node: str | None, sums: Mapping[str, Sums]) -> list[DigestRow]:
    """Return the rows of a node's digest: itself, then those right below it; for the organisation the highest ones."""
    shown = [] if node is None or node not in sums else [node]
    shown += sorted(each for each in sums if parent(each) == node)
    return [
        DigestRow(
            account=each,
            given_gpu_ms=sums[each].given,
            spent_gpu_ms=sums[each].spent,
            owed_gpu_ms=sums[each].owed,
            delivered_gpu_ms=sums[each].delivered,
            idle_gpu_ms=sums[each].idle,
            squatted_gpu_ms=sums[each].squatted,
        )
        for each in shown
    ]


def digest_text(data: WeeklyDigest) -> Text:
    """Return a digest in words: the verdict, then the figures, then what to type next."""
    last = dt.date.fromisoformat(data.to_day) - dt.timedelta(days=1)
    whose = data.account or "All accounts"
    rows = data.rows[:1] if data.account is not None else data.rows
    owed = _sum(row.owed_gpu_ms for row in rows)
    delivered = sum(row.delivered_gpu_ms for row in rows)
    spent, given = sum(row.spent_gpu_ms for row in rows), sum(row.given_gpu_ms for row in rows)
    said = f"{people_gpu_hours(delivered)} GPU-hours were delivered"
    if owed:
        met = min(owed, delivered) * _ALL // owed
        said += f", {met} % of the {people_gpu_hours(owed)} that were owed"
    budget = f"{people_gpu_hours(spent)} of {people_gpu_hours(given)} GPU-hours"
    where = f"--cluster {data.cluster}"
    return Text(
        subject=f"{whose} on {data.cluster}: the week of {data.from_day}",
        lead=f"From {data.from_day} to {last}, {said}. Of the budget of {data.period}, {budget} are spent so far.",
        facts=(("Cluster", data.cluster), ("Week", data.week), ("Budget period", data.period), *_waits(data)),
        tables=(_table(data.rows),),
        advice=f"gpuledger budget report --period {data.period} {where} shows why;"
        f" gpuledger waste {where} and gpuledger waits {where} show the rest.",
    )


def _table(rows: Sequence[DigestRow]) -> Table:
    return Table(
        "GPU-hours",
        ("account", "spent of budget", "owed this week", "delivered", "idle", "squatted"),
        tuple(
            (
                row.account,
                f"{people_gpu_hours(row.spent_gpu_ms)} of {people_gpu_hours(row.given_gpu_ms)}",
                "not known" if row.owed_gpu_ms is None else people_gpu_hours(row.owed_gpu_ms),
                people_gpu_hours(row.delivered_gpu_ms),
                people_gpu_hours(row.idle_gpu_ms),
                people_gpu_hours(row.squatted_gpu_ms),
            )
            for row in rows
        ),
    )


def _waits(data: WeeklyDigest) -> list[tuple[str, str]]:
    waits = data.waits
    if waits is None:
        return []
    asked = f"{waits.started_count} of {waits.request_count} requests started"
    half, most = _duration(waits.p50_s), _duration(waits.p90_s)
    return [("Waits", f"{asked}; half had started after {half}, nine in ten after {most}")]


def _duration(length_s: int | None) -> str:
    if length_s is None:
        return "longer than is known yet"
    minutes = -(-length_s // 60)
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest:02d} min" if hours else f"{rest} min"


def _sum(amounts: Iterable[int | None]) -> int | None:
    found = list(amounts)
    known = [each for each in found if each is not None]
    return sum(known) if len(known) == len(found) else None
