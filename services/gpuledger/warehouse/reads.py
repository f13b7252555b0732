"""What the API reads of the warehouse: sums in SQL first, ratios last, never a mean of ratios.

A window is widened to the whole hours or days that it touches. Hours without inventory are left out of
availability and occupancy on both sides of the ratio, and the row says how many they were.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, assert_never

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from gpuledger.database.engine import Reader
from gpuledger.database.metadata import Instant
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant, seconds
from gpuledger.kernel.errors import Refused
from gpuledger.warehouse.readings import Impact, Sums, ratio
from gpuledger.warehouse.tables import (
    layer_metrics_day,
    layer_metrics_hour,
    owed_hour,
    watermark,
)

RUNG = "gpu_util"
"""The rung of the utilisation ladder that the warehouse's samples stand for: liveness."""

NO_INVENTORY = "no inventory of this cluster in this window"
NOTHING_OWED = "nothing was owed in this window: no account had both entitlement and demand"
NOTHING_SAMPLED = "no sample of utilisation in this window"
NOTHING_USABLE = "no GPU was fit for use in this window"
NOTHING_INSTALLED = "no GPU was installed in this window"

_AMOUNTS = (
    "installed_gpu_ms",
    "unhealthy_gpu_ms",
    "unhealthy_occupied_gpu_ms",
    "maintenance_gpu_ms",
    "allocated_gpu_ms",
    "unallocated_gpu_ms",
    "overhead_gpu_ms",
    "reserved_gpu_ms",
    "free_gpu_ms",
    "lost_gpu_ms",
    "unknown_gpu_ms",
    "residual_gpu_ms",
    "sampled_gpu_ms",
    "used_gpu_ms",
)
# Written into the statement: PostgreSQL must see one expression in SELECT and GROUP BY, not two parameters.
_UTC: sa.ColumnElement[str] = sa.literal_column("'UTC'")
_HOUR_FORM: sa.ColumnElement[str] = sa.literal_column("""'YYYY-MM-DD"T"HH24:MI:SS"Z"'""")
_MONTH_FORM: sa.ColumnElement[str] = sa.literal_column("'YYYY-MM'")
_ALWAYS_KNOWN = ("allocated_gpu_ms", "unallocated_gpu_ms", "sampled_gpu_ms", "used_gpu_ms")


class LayersBy(StrEnum):
    """What the rows of the four layers are keyed by."""

    HOUR = "hour"
    DAY = "day"
    MONTH = "month"
    CLUSTER = "cluster"
    TOTAL = "total"


_OF_DAYS = frozenset((LayersBy.DAY, LayersBy.MONTH))
"""What is summed from days of the organisation's zone; a month is one of its periods, as far as the window reaches."""


@dataclass(frozen=True, slots=True)
class LayersQuery:
    """What is asked.

    Args:
        by: The key of the rows.
        cluster: One cluster, or all of them summed.
        from_s: Start of the window, seconds since the epoch; the beginning unless given.
        to_s: End of the window (exclusive); the end unless given.
        as_of: Recorded time: what the warehouse said then; now unless given.
    """

    by: LayersBy
    cluster: str | None = None
    from_s: int | None = None
    to_s: int | None = None
    as_of: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class OwedSums:
    """Delivered against owed over one window; the cut at what was owed is per account.

    Args:
        owed_gpu_ms: Sum of W over accounts and hours.
        delivered_gpu_ms: Sum of L.
        window_met_gpu_ms: Sum over accounts of min(sum of L, sum of W).
        hourly_met_gpu_ms: Sum over accounts and hours of min(L, W).
    """

    owed_gpu_ms: int
    delivered_gpu_ms: int
    window_met_gpu_ms: int
    hourly_met_gpu_ms: int

    def impact(self) -> Impact:
        """Return the three readings."""
        return Impact(
            raw=ratio(self.delivered_gpu_ms, self.owed_gpu_ms),
            window=ratio(self.window_met_gpu_ms, self.owed_gpu_ms),
            hourly=ratio(self.hourly_met_gpu_ms, self.owed_gpu_ms),
        )


@dataclass(frozen=True, slots=True)
class LayersRow:
    """The four layers of one key.

    Args:
        key: Hour, day, month, cluster or ``total``.
        amounts: Column of the warehouse -> sum of gpu_ms; None where no hour knew it.
        capacity: The same sums over the hours with inventory only.
        owed: Delivered against owed, or None without entitlement.
        parts: Hours (or days) that were summed.
        parts_with_inventory: Those of them that knew what was installed.
        notes: Why the pipelines left columns empty.
    """

    key: str
    amounts: Mapping[str, int | None]
    capacity: Sums
    owed: OwedSums | None
    parts: int
    parts_with_inventory: int
    notes: tuple[str, ...]

    def reasons(self) -> dict[str, str]:
        """Return layer -> why it has no value, for each that has none."""
        note = "; ".join(self.notes) or NO_INVENTORY
        found: dict[str, str] = {}
        if self.parts_with_inventory == 0:
            found = {"availability": note, "occupancy": note}
        elif self.capacity.availability() is None:
            found = {"availability": NOTHING_INSTALLED, "occupancy": NOTHING_INSTALLED}
        elif self.capacity.occupancy() is None:
            found = {"occupancy": NOTHING_USABLE}
        if self.owed is None:
            found["impact"] = note
        elif self.owed.owed_gpu_ms == 0:
            found["impact"] = NOTHING_OWED
        if not self.amounts["sampled_gpu_ms"]:
            found["utilisation"] = NOTHING_SAMPLED
        return found

    def as_json(self) -> dict[str, Any]:
        """Return the row under the published keys, with the sums that the ratios were made of."""
        reasons = self.reasons()
        readings = self.owed.impact() if self.owed else Impact(None, None, None)
        everything = _sums(self.amounts)
        return {
            "key": self.key,
            "availability": _text(self.capacity.availability()),
            "occupancy": _text(self.capacity.occupancy()),
            "occupancy_with_overhead": _text(self.capacity.occupancy_with_overhead()),
            "impact": {name: _text(value) for name, value in readings._asdict().items()},
            "utilisation": {
                "value": _text(everything.utilisation()),
                "rung": RUNG,
                "coverage": _text(everything.coverage()),
            },
            "reason": "; ".join(dict.fromkeys([*reasons.values(), *self._partial()])) or None,
            "reasons": reasons,
            **self.amounts,
            "healthy_gpu_ms": self.capacity.healthy_gpu_ms,
            "usable_gpu_ms": self.capacity.usable_gpu_ms,
            "occupied_gpu_ms": everything.occupied_gpu_ms,
            "occupied_with_inventory_gpu_ms": (
                self.capacity.occupied_gpu_ms if self.parts_with_inventory else None
            ),
            "owed_gpu_ms": self.owed.owed_gpu_ms if self.owed else None,
            "delivered_gpu_ms": self.owed.delivered_gpu_ms if self.owed else None,
            "window_met_gpu_ms": self.owed.window_met_gpu_ms if self.owed else None,
        }

    def _partial(self) -> list[str]:
        missing = self.parts - self.parts_with_inventory
        if missing and self.parts_with_inventory:
            return [f"availability and occupancy leave out {missing} of {self.parts} parts without inventory"]
        return []


def layers(reader: Reader, query: LayersQuery, calendar: Calendar) -> list[LayersRow]:
    """Return the four layers of a window, in order of the key.

    Args:
        reader: A snapshot.
        query: What is asked.
        calendar: The organisation's days.

    Raises:
        Refused: When the warehouse has been rolled up after ``query.as_of``: it keeps no earlier state.
    """
    require_state_of(reader, query.cluster, query.as_of)
    table = layer_metrics_day if query.by in _OF_DAYS else layer_metrics_hour
    key = _key(query.by, table)
    known = table.c.installed_gpu_ms.is_not(None)
    statement = (
        sa.select(
            key.label("key"),
            sa.func.count().label("parts"),
            sa.func.count().filter(known).label("parts_with_inventory"),
            sa.func.array_agg(table.c.reason.distinct()).filter(table.c.reason.is_not(None)).label("notes"),
            *[_sum(table.c[name]).label(name) for name in _AMOUNTS],
            *[_sum(table.c[name], known).label(f"known_{name}") for name in _AMOUNTS],
        )
        .where(*_within(query, table, calendar))
        .group_by(key)
        .order_by(key)
    )
    owed = _owed(reader, query, calendar)
    return [_row(found, owed.get(found["key"])) for found in reader.execute(statement).mappings()]


def rolled_up_since(reader: Reader, cluster: str | None, at: dt.datetime) -> dt.datetime | None:
    """Return when a cluster, or any, was rolled up last, if that was after an instant; else None."""
    newest = sa.select(sa.func.max(watermark.c.as_of_at)).where(watermark.c.as_of_at > at)
    if cluster is not None:
        newest = newest.where(watermark.c.cluster == cluster)
    return reader.execute(newest).scalar_one_or_none()


def require_state_of(reader: Reader, cluster: str | None, at: dt.datetime | None) -> None:
    """Refuse a recorded time before the newest roll-up: the warehouse keeps no earlier state. Now is always well."""
    if at is not None and (rolled_up_at := rolled_up_since(reader, cluster, at)) is not None:
        raise Refused(
            f"the warehouse was rolled up at {rolled_up_at.astimezone(dt.UTC):%Y-%m-%dT%H:%M:%SZ}"
            " and keeps no earlier state",
            hint="ask for a later time; usage and balance answer as of any recorded time",
        )


def _row(found: sa.RowMapping, owed: OwedSums | None) -> LayersRow:
    amounts = {name: found[name] for name in _AMOUNTS}
    amounts |= {name: amounts[name] or 0 for name in _ALWAYS_KNOWN}
    known = {name.removeprefix("known_"): found[name] for name in found if name.startswith("known_")}
    return LayersRow(
        key=found["key"],
        amounts=amounts,
        capacity=_sums(known),
        owed=owed,
        parts=found["parts"],
        parts_with_inventory=found["parts_with_inventory"],
        notes=tuple(found["notes"] or ()),
    )


def _sums(amounts: Mapping[str, int | None]) -> Sums:
    return Sums(
        installed_gpu_ms=amounts["installed_gpu_ms"],
        unhealthy_gpu_ms=amounts["unhealthy_gpu_ms"],
        unhealthy_occupied_gpu_ms=amounts["unhealthy_occupied_gpu_ms"],
        maintenance_gpu_ms=amounts["maintenance_gpu_ms"],
        allocated_gpu_ms=amounts["allocated_gpu_ms"] or 0,
        unallocated_gpu_ms=amounts["unallocated_gpu_ms"] or 0,
        overhead_gpu_ms=amounts["overhead_gpu_ms"],
        sampled_gpu_ms=amounts["sampled_gpu_ms"] or 0,
        used_gpu_ms=amounts["used_gpu_ms"] or 0,
    )


def _owed(reader: Reader, query: LayersQuery, calendar: Calendar) -> dict[str, OwedSums]:
    """Return key -> sums of delivered and owed; each account is cut at what it was owed on each cluster."""
    table = owed_hour
    names: list[str] = []
    if query.by in _OF_DAYS:
        names, starts = _days(reader, query, calendar)
        if not names:
            return {}
        # A day is looked up among the beginnings of days: a clock read and written for each hour takes twice as long.
        key: sa.ColumnElement[Any] = sa.func.width_bucket(table.c.hour_at, sa.literal(starts, ARRAY(Instant)))
    else:
        key = _key(query.by, table)
    per_account = (
        sa.select(
            key.label("key"),
            _sum(table.c.owed_gpu_ms).label("owed"),
            _sum(table.c.delivered_gpu_ms).label("delivered"),
            _sum(sa.func.least(table.c.owed_gpu_ms, table.c.delivered_gpu_ms)).label("met"),
        )
        .where(table.c.owed_gpu_ms.is_not(None), *_within(query, table, calendar))
        .group_by(key, table.c.cluster, table.c.account)
        .subquery()
    )
    columns = per_account.c
    statement = sa.select(
        columns.key,
        _sum(columns.owed),
        _sum(columns.delivered),
        _sum(sa.func.least(columns.delivered, columns.owed)),
        _sum(columns.met),
    ).group_by(columns.key)
    return {names[row[0] - 1] if names else row[0]: OwedSums(*row[1:]) for row in reader.execute(statement)}


def _days(reader: Reader, query: LayersQuery, calendar: Calendar) -> tuple[list[str], list[dt.datetime]]:
    """Return the names of the days or months that hold owed hours of a window, and when each begins."""
    column = owed_hour.c.hour_at
    first, last = reader.execute(
        sa.select(sa.func.min(column), sa.func.max(column)).where(*_within(query, owed_hour, calendar))
    ).one()
    if first is None:
        return [], []
    day, end = (calendar.day_of(seconds(at)) for at in (first, last))
    names: list[str] = []
    starts: list[dt.datetime] = []
    while day <= end:
        name = day.isoformat() if query.by is LayersBy.DAY else calendar.period_of(day)
        if names[-1:] != [name]:
            names.append(name)
            starts.append(instant(calendar.day_start_s(day)))
        day += dt.timedelta(days=1)
    return names, starts


def _key(by: LayersBy, table: sa.Table) -> sa.ColumnElement[str]:
    match by:
        case LayersBy.HOUR:
            return sa.func.to_char(sa.func.timezone(_UTC, table.c.hour_at), _HOUR_FORM)
        case LayersBy.DAY:
            return sa.cast(table.c.day, sa.Text)
        case LayersBy.MONTH:
            return sa.func.to_char(table.c.day, _MONTH_FORM)
        case LayersBy.CLUSTER:
            return table.c.cluster
        case LayersBy.TOTAL:
            return sa.literal_column("'total'::text")
        case _ as never:
            assert_never(never)


def _within(query: LayersQuery, table: sa.Table, calendar: Calendar) -> list[sa.ColumnElement[bool]]:
    clauses: list[sa.ColumnElement[bool]] = []
    if query.cluster is not None:
        clauses.append(table.c.cluster == query.cluster)
    if "day" in table.c:
        if query.from_s is not None:
            clauses.append(table.c.day >= calendar.day_of(query.from_s))
        if query.to_s is not None:
            clauses.append(table.c.day <= calendar.day_of(query.to_s - 1))
        return clauses
    from_s, to_s = query.from_s, query.to_s
    if query.by in _OF_DAYS:
        # The same whole days as the other half of the row.
        from_s = None if from_s is None else calendar.day_start_s(calendar.day_of(from_s))
        to_s = (
            None if to_s is None else calendar.day_start_s(calendar.day_of(to_s - 1) + dt.timedelta(days=1))
        )
    if from_s is not None:
        clauses.append(table.c.hour_at > instant(from_s) - dt.timedelta(hours=1))
    if to_s is not None:
        clauses.append(table.c.hour_at < instant(to_s))
    return clauses


def _sum(
    column: sa.ColumnElement[Any], condition: sa.ColumnElement[bool] | None = None
) -> sa.ColumnElement[int]:
    total = sa.func.sum(column)
    return sa.cast(total if condition is None else total.filter(condition), sa.BigInteger)


def _text(value: Decimal | None) -> str | None:
    return None if value is None else str(value)


def as_of(reader: Reader, cluster: str | None) -> dt.datetime | None:
    """Return the instant up to which the warehouse has seen the book; the oldest of several clusters'.

    None when nothing has been rolled up.
    """
    statement = sa.select(sa.func.min(watermark.c.as_of_at))
    if cluster is not None:
        statement = statement.where(watermark.c.cluster == cluster)
    return reader.execute(statement).scalar_one_or_none()
