"""Read what the digest of the last week is made of, as the last roll-up left it."""

import datetime as dt
from collections.abc import Collection, Iterator, Mapping

import sqlalchemy as sa

from gpuledger.database.engine import Reader
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import seconds
from gpuledger.notify.digests import Week, by_node, last_week, rows_of
from gpuledger.notify.payloads import DigestWaits, WeeklyDigest
from gpuledger.warehouse.budgets import budget_rows
from gpuledger.warehouse.owed import OwedBy, OwedQuery, owed
from gpuledger.warehouse.spans import spans
from gpuledger.warehouse.tables import waste_day
from gpuledger.warehouse.waits import WaitsBy, WaitsQuery, waits

Amounts = Mapping[str, int | None]


def read_digests(
    reader: Reader, calendar: Calendar, now: dt.datetime, nodes: Collection[str | None]
) -> list[WeeklyDigest]:
    """Return the last week of each node on each cluster that has been rolled up to its end; none of who had no part.

    Args:
        reader: A snapshot.
        calendar: The organisation's days.
        now: The present.
        nodes: Accounts; None for the organisation.
    """
    if not nodes:
        return []
    week = last_week(calendar, now)
    end_s = calendar.day_start_s(week.end)
    return [
        digest
        for cluster, span in sorted(spans(reader).items())
        if seconds(span.to_at) >= end_s  # a week that is told too early would be told once, and wrong
        for digest in _of_cluster(reader, calendar, cluster, week, nodes)
    ]


def _of_cluster(
    reader: Reader, calendar: Calendar, cluster: str, week: Week, nodes: Collection[str | None]
) -> Iterator[WeeklyDigest]:
    period = calendar.period_of(week.end - dt.timedelta(days=1))
    sums = by_node(_leaves(reader, calendar, cluster, week, period))
    for node in sorted(nodes, key=lambda each: each or ""):
        rows = rows_of(node, sums)
        if rows:
            yield WeeklyDigest(
                cluster=cluster,
                account=node,
                week=week.name,
                from_day=week.monday.isoformat(),
                to_day=week.end.isoformat(),
                period=period,
                rows=rows,
                waits=_waits(reader, calendar, cluster, week, node),
            )


def _leaves(
    reader: Reader, calendar: Calendar, cluster: str, week: Week, period: str
) -> Iterator[tuple[str, Amounts]]:
    for row in budget_rows(reader, cluster, period):
        given = row["budget_gpu_ms"] + row["transferred_gpu_ms"]
        yield row["account"], {"given": given, "spent": row["charged_gpu_ms"] - row["credited_gpu_ms"]}
    window = OwedQuery(
        cluster,
        OwedBy.TOTAL,
        from_s=calendar.day_start_s(week.monday),
        to_s=calendar.day_start_s(week.end),
    )
    for each in owed(reader, window, calendar):
        is_known = each.hours == each.hours_with_inventory
        amount = each.owed_gpu_ms if is_known else None
        yield each.account, {"owed": amount, "delivered": each.delivered_gpu_ms}
    column = waste_day.c
    statement = (
        sa.select(
            column.account,
            sa.cast(sa.func.sum(column.idle_gpu_ms), sa.BigInteger).label("idle"),
            sa.cast(sa.func.sum(column.squatted_gpu_ms), sa.BigInteger).label("squatted"),
        )
        .where(column.cluster == cluster, column.day >= week.monday, column.day < week.end)
        .group_by(column.account)
    )
    for found in reader.execute(statement):
        yield found.account, {"idle": found.idle, "squatted": found.squatted}


def _waits(
    reader: Reader, calendar: Calendar, cluster: str, week: Week, node: str | None
) -> DigestWaits | None:
    query = WaitsQuery(
        WaitsBy.TOTAL,
        cluster,
        node,
        from_s=calendar.day_start_s(week.monday),
        to_s=calendar.day_start_s(week.end),
    )
    for row in waits(reader, query, calendar):
        return DigestWaits(
            request_count=row.counts["request_count"],
            started_count=row.counts["started_count"],
            p50_s=row.quantiles["p50_s"],
            p90_s=row.quantiles["p90_s"],
        )
    return None
