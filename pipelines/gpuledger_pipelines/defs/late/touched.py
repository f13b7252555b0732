"""Which days of a cluster are to be restated: those that have ended since, and those that late facts touch."""

import datetime as dt
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from gpuledger.events.envelope import ORG_BOOK
from gpuledger.kernel.calendar import Calendar
from gpuledger_pipelines.defs.waste.assets import SAMPLE_S, SQUATTED_AFTER_S
from gpuledger_pipelines.partitions import DAY_S, utc_days
from gpuledger_pipelines.statements import statement

BEYOND_S = SQUATTED_AFTER_S + SAMPLE_S
"""How far samples beyond a day can matter to it: whether a run squats at midnight is seen on both sides."""

PATIENCE_S = 2 * DAY_S
"""For how long after its end a day waits for a source that has not passed it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a cluster's tables are.

    Args:
        seq: The newest row of its book that they know.
        org_seq: The newest row of the organisation's book that they know.
        until_s: Start of the first UTC day that they do not have yet, seconds since the epoch.
    """

    seq: int
    org_seq: int
    until_s: int


@dataclass(frozen=True, slots=True)
class Touched:
    """What is to be restated to get from one mark to the next.

    Args:
        days: UTC days, in order.
        periods: Periods that are over and were posted into since, while none of their days is touched.
    """

    days: tuple[dt.date, ...] = ()
    periods: tuple[str, ...] = ()


def present(connection: sa.Connection, now_s: int) -> dict[str, Mark]:
    """Return where each cluster's tables could be now: a day is over when the slowest source has passed its end.

    So has the book's own clock, which seals the day's samples. A cluster with neither, such as a trace, has told all it
    knows. Who is silent is waited for no longer than ``PATIENCE_S``: what is told afterwards is late, and restated.

    Args:
        connection: Reads ``ledger_read``; one snapshot for this and ``touched``.
        now_s: The present, in seconds since the epoch.
    """
    rows = connection.execute(
        sa.text(
            "SELECT book, last_seq, coalesce((SELECT last_seq FROM ledger_read.books WHERE book = :org), 0),"
            " floor(extract(epoch FROM least(ticked_at - :beyond_s * interval '1 second',"
            "  (SELECT min(told_until_at) FROM ledger_read.watermarks WHERE cluster = book))))::bigint"
            " FROM ledger_read.books WHERE book <> :org ORDER BY book"
        ),
        {"org": ORG_BOOK, "beyond_s": BEYOND_S},
    )
    return {
        book: Mark(
            seq,
            org_seq,
            _midnight(now_s if told_s is None else min(now_s, max(told_s, now_s - PATIENCE_S))),
        )
        for book, seq, org_seq, told_s in rows
    }


def touched(
    connection: sa.Connection, calendar: Calendar, cluster: str, since: Mark | None, now: Mark
) -> Touched:
    """Return what differs between what the tables know and what the ledger says now.

    Args:
        connection: Reads ``ledger_read``, in the snapshot that ``now`` was read in.
        calendar: The organisation's periods.
        cluster: The cluster, which is also the book.
        since: How far its tables are; None when it has none yet.
        now: How far they are to be.
    """
    first_s = _first(connection, cluster)
    if first_s is None:
        return Touched()
    if since is None:
        return Touched(days=tuple(_days([(first_s, now.until_s)])))
    spans = [(since.until_s, now.until_s)]
    if (since.seq, since.org_seq) != (now.seq, now.org_seq):
        binds = {
            "cluster": cluster,
            "seq": since.seq,
            "org_seq": since.org_seq,
            "to_s": since.until_s,
            "beyond_s": BEYOND_S,
        }
        spans += [
            (from_s, to_s) for from_s, to_s in connection.execute(sa.text(statement("late/touched")), binds)
        ]
    days = tuple(_days([(max(from_s, first_s), to_s) for from_s, to_s in spans]))
    return Touched(days, tuple(_periods(connection, calendar, cluster, since, days)))


def ranges(days: Iterable[dt.date]) -> list[tuple[dt.date, dt.date]]:
    """Return the first and last day of each stretch of days that follow each other."""
    stretches = itertools.groupby(enumerate(sorted(days)), lambda each: each[1].toordinal() - each[0])
    listed = [[day for _, day in stretch] for _, stretch in stretches]
    return [(stretch[0], stretch[-1]) for stretch in listed]


def _first(connection: sa.Connection, cluster: str) -> int | None:
    """Return when somebody first ran or waited; before, a roll-up has no rows."""
    found: int | None = connection.execute(
        sa.text(
            "SELECT floor(extract(epoch FROM least("
            "(SELECT min(from_at) FROM ledger_read.segments WHERE cluster = :cluster),"
            " (SELECT min(from_at) FROM ledger_read.waits WHERE cluster = :cluster))))::bigint"
        ),
        {"cluster": cluster},
    ).scalar()
    return found


def _days(spans: Sequence[tuple[int, int]]) -> list[dt.date]:
    found: set[dt.date] = set()
    for from_s, to_s in spans:
        if from_s < to_s:
            first, last = utc_days(from_s, to_s)
            found.update(first + dt.timedelta(days=n) for n in range((last - first).days + 1))
    return sorted(found)


def _periods(
    connection: sa.Connection, calendar: Calendar, cluster: str, since: Mark, days: Sequence[dt.date]
) -> list[str]:
    """Return periods that were over before, were posted into, and are not restated with one of their days.

    A period that goes on is restated each time a day of it ends.
    """
    posted = connection.execute(
        sa.text(
            "SELECT DISTINCT period FROM ledger_read.posted WHERE cluster = :cluster AND seq > :seq ORDER BY 1"
        ),
        {"cluster": cluster, "seq": since.seq},
    ).scalars()
    restated: set[str] = set()
    for first, last in ranges(days):
        start_s = int(dt.datetime.combine(first, dt.time(), dt.UTC).timestamp())
        restated.update(calendar.periods_between(start_s, start_s + ((last - first).days + 1) * DAY_S))
    return [
        period
        for period in posted
        if period not in restated and calendar.period_bounds_s(period)[1] <= since.until_s
    ]


def _midnight(at_s: int) -> int:
    return at_s - at_s % DAY_S
