"""How long requests waited, as the warehouse keeps it: every wait of a day, put together before a quantile is read.

Quantiles of several rows are not made of their quantiles: all their waits are put together, those that are not over
as what they are (Kaplan and Meier, ``kernel.survival``).
"""

import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, assert_never

import sqlalchemy as sa

from gpuledger.database.engine import Reader
from gpuledger.kernel.accounts import own_path
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.survival import Lengths
from gpuledger.warehouse.reads import require_state_of
from gpuledger.warehouse.subtree import is_below
from gpuledger.warehouse.tables import queue_wait_day

QUANTILES = {"p50_s": 500, "p90_s": 900, "p99_s": 990}
"""Key of a row -> per mille of requests that had started by then."""

_COUNTS = ("request_count", "started_count", "at_once_count", "waiting_count", "withdrawn_count")


class WaitsBy(StrEnum):
    """What the rows are keyed by."""

    SIZE = "size"
    CLASS = "class"
    ACCOUNT = "account"
    DAY = "day"
    TURN = "turn"
    TOTAL = "total"


class WorkClass(StrEnum):
    """The class of a run; of a request without one as it was asked for."""

    ALLOCATED = "allocated"
    UNALLOCATED = "unallocated"


@dataclass(frozen=True, slots=True)
class WaitsQuery:
    """What is asked.

    Args:
        by: The key of the rows.
        cluster: One cluster, or all of them together.
        account: An account and all below it, or all.
        klass: One class, or both.
        from_s: Start of the window, seconds since the epoch; widened to the day that it touches.
        to_s: End of the window (exclusive); likewise.
        as_of: Recorded time: what the warehouse said then; now unless given.
    """

    by: WaitsBy
    cluster: str | None = None
    account: str | None = None
    klass: WorkClass | None = None
    from_s: int | None = None
    to_s: int | None = None
    as_of: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class WaitsRow:
    """The waits of one key.

    Args:
        key: Size, class, account, day, turn or ``total``.
        counts: Column of the warehouse -> sum.
        quantiles: Key of a quantile -> seconds; None where it is not known yet.
        longest_s: The longest wait so far, over or not.
    """

    key: str
    counts: Mapping[str, int]
    quantiles: Mapping[str, int | None]
    longest_s: int

    def as_json(self) -> dict[str, Any]:
        """Return the row under the published keys."""
        return {"key": self.key, **self.counts, **self.quantiles, "longest_s": self.longest_s}


def waits(
    reader: Reader, query: WaitsQuery, calendar: Calendar, inner: Collection[str] = ()
) -> list[WaitsRow]:
    """Return the waits of a window, in order of the key; sizes from the smallest up.

    Args:
        reader: A snapshot.
        query: What is asked.
        calendar: The organisation's days.
        inner: Accounts that have others below them: what they own themselves is a leaf of its own.

    Raises:
        Refused: When the warehouse has been rolled up after ``query.as_of``: it keeps no earlier state.
    """
    require_state_of(reader, query.cluster, query.as_of)
    column, within = _key(query.by), _within(query, calendar)
    sums = [sa.cast(sa.func.sum(queue_wait_day.c[name]), sa.BigInteger).label(name) for name in _COUNTS]
    statement = (
        sa.select(column.label("key"), *sums, sa.func.max(queue_wait_day.c.longest_s).label("longest_s"))
        .where(*within)
        .group_by(column)
    )
    lengths = _lengths(reader, column, within)
    rows = []
    for found in reader.execute(statement).mappings():
        seen = lengths.get(found["key"], Lengths())
        values = seen.quantiles(*QUANTILES.values())
        key = str(found["key"])
        rows.append(
            WaitsRow(
                key=own_path(key) if query.by is WaitsBy.ACCOUNT and key in inner else key,
                counts={name: found[name] for name in _COUNTS},
                quantiles=dict(zip(QUANTILES, values, strict=True)),
                longest_s=found["longest_s"],
            )
        )
    return sorted(rows, key=_place if query.by is WaitsBy.SIZE else lambda row: (0, row.key))


def _lengths(
    reader: Reader, column: sa.ColumnElement[Any], within: Collection[sa.ColumnElement[bool]]
) -> dict[Any, Lengths]:
    """Return key -> every wait of it; the database counts those of one length, which are many."""
    found: dict[Any, Lengths] = {}
    for ended, values in (
        (True, queue_wait_day.c.started_after_s),
        (False, queue_wait_day.c.unstarted_for_s),
    ):
        each = (
            sa.func.unnest(values)
            .table_valued(sa.column("length_s", sa.BigInteger), name="each_wait")
            .render_derived()
        )
        length = each.c.length_s
        statement = (
            sa.select(column.label("key"), length, sa.func.count())
            .select_from(queue_wait_day.join(each, sa.true()))
            .where(*within)
            .group_by(column, length)
        )
        for key, length_s, count in reader.execute(statement):
            own = found.setdefault(key, Lengths())
            (own.ended if ended else own.unended)[length_s] = count
    return found


def _key(by: WaitsBy) -> sa.ColumnElement[Any]:
    column = queue_wait_day.c
    match by:
        case WaitsBy.SIZE:
            return column.size
        case WaitsBy.CLASS:
            return column.klass
        case WaitsBy.ACCOUNT:
            return column.account
        case WaitsBy.DAY:
            return column.day
        case WaitsBy.TURN:
            return column.turn
        case WaitsBy.TOTAL:
            # Written into the statement: PostgreSQL must see one expression in SELECT and GROUP BY.
            return sa.literal_column("'total'::text")
        case _ as never:
            assert_never(never)


def _within(query: WaitsQuery, calendar: Calendar) -> list[sa.ColumnElement[bool]]:
    column = queue_wait_day.c
    clauses: list[sa.ColumnElement[bool]] = []
    if query.cluster is not None:
        clauses.append(column.cluster == query.cluster)
    if query.account is not None:
        clauses.append(is_below(column.account, query.account))
    if query.klass is not None:
        clauses.append(column.klass == query.klass.value)
    if query.from_s is not None:
        clauses.append(column.day >= calendar.day_of(query.from_s))
    if query.to_s is not None:
        clauses.append(column.day <= calendar.day_of(query.to_s - 1))
    return clauses


def _place(row: WaitsRow) -> tuple[int, str]:
    """Return where a size stands: ``<1`` first, then by its fewest GPUs."""
    fewest = row.key.partition("-")[0]
    return (int(fewest) if fewest.isdigit() else 0, row.key)
