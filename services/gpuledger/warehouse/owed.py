"""What accounts were owed and delivered over time: the hours of the roll-up, summed by account and key.

A window is widened to the whole hours that it touches, as for the layers. What needs an inventory is null where no
hour of the row had one; the rows say how many had.
"""

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, assert_never

import sqlalchemy as sa

from gpuledger.database.engine import Reader
from gpuledger.kernel.accounts import SEPARATOR
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant
from gpuledger.warehouse.reads import require_state_of


class OwedBy(StrEnum):
    """What the rows of an account are keyed by."""

    HOUR = "hour"
    DAY = "day"
    MONTH = "month"
    TOTAL = "total"


@dataclass(frozen=True, slots=True)
class OwedQuery:
    """What is asked.

    Args:
        cluster: The cluster.
        by: The key of the rows.
        within: An account with all below it; all unless given.
        from_s: Start of the window, seconds since the epoch; the beginning unless given.
        to_s: End of the window, exclusive; the end unless given.
        as_of: Recorded time: what the warehouse said then; now unless given.
    """

    cluster: str
    by: OwedBy
    within: str | None = None
    from_s: int | None = None
    to_s: int | None = None
    as_of: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class OwedRow:
    """What one account was owed and delivered under one key; amounts in gpu_ms.

    Args:
        hours: How many hours were summed.
        hours_with_inventory: Those of them in which it is known what there was to be owed.
        met_gpu_ms: Hour by hour what was delivered of what was owed, and no more.
    """

    key: str
    account: str
    entitlement_gpu_ms: int | None
    demand_gpu_ms: int
    owed_gpu_ms: int | None
    delivered_gpu_ms: int
    met_gpu_ms: int | None
    hours: int
    hours_with_inventory: int

    def as_json(self) -> dict[str, Any]:
        """Return it under its published keys."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def owed(reader: Reader, query: OwedQuery, calendar: Calendar) -> list[OwedRow]:
    """Return the series, by key and account; hours in which an account neither asked nor got anything add nothing.

    Args:
        reader: A snapshot.
        query: What is asked.
        calendar: The organisation's days: keys of days and months are cut in its zone.

    Raises:
        Refused: When the warehouse has been rolled up after ``query.as_of``: it keeps no earlier state.
    """
    require_state_of(reader, query.cluster, query.as_of)
    statement = sa.text(
        f"""
        SELECT {_key(query.by)} AS key, account,
               CAST(sum(entitlement_gpu_ms) AS bigint), CAST(sum(demand_gpu_ms) AS bigint),
               CAST(sum(owed_gpu_ms) AS bigint), CAST(sum(delivered_gpu_ms) AS bigint),
               CAST(sum(least(owed_gpu_ms, delivered_gpu_ms)) FILTER (WHERE owed_gpu_ms IS NOT NULL) AS bigint),
               count(*), count(owed_gpu_ms)
        FROM warehouse.owed_hour
        WHERE cluster = :cluster
          AND (CAST(:from AS timestamptz) IS NULL OR hour_at >= date_trunc('hour', CAST(:from AS timestamptz), 'UTC'))
          AND (CAST(:to AS timestamptz) IS NULL OR hour_at < CAST(:to AS timestamptz))
          AND (CAST(:account AS text) IS NULL OR account = :account OR starts_with(account, :below))
        GROUP BY 1, 2 ORDER BY 1, 2
        """
    )
    rows = reader.execute(
        statement,
        {
            "cluster": query.cluster,
            "zone": calendar.timezone,
            "from": None if query.from_s is None else instant(query.from_s),
            "to": None if query.to_s is None else instant(query.to_s),
            "account": query.within,
            "below": f"{query.within}{SEPARATOR}",
        },
    )
    return [OwedRow(*row) for row in rows]


def _key(by: OwedBy) -> str:
    match by:
        case OwedBy.HOUR:
            return r"""to_char(timezone('UTC', hour_at), 'YYYY-MM-DD"T"HH24\:MI\:SS"Z"')"""
        case OwedBy.DAY:
            return "to_char(timezone(CAST(:zone AS text), hour_at), 'YYYY-MM-DD')"
        case OwedBy.MONTH:
            return "to_char(timezone(CAST(:zone AS text), hour_at), 'YYYY-MM')"
        case OwedBy.TOTAL:
            return "CAST('total' AS text)"
        case _ as never:
            assert_never(never)
