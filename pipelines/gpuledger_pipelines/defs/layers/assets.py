"""The four layers: what was installed, what became of it, and the sums that the readings are ratios of."""

import datetime as dt

import dagster as dg

from gpuledger.kernel.calendar import Calendar
from gpuledger_pipelines.declaring import BUCKETS, HOURS, warehouse_asset
from gpuledger_pipelines.defs.owed.assets import owed_hour
from gpuledger_pipelines.defs.usage.assets import usage_bucket, usage_hour
from gpuledger_pipelines.partitions import BUCKET_S, Span, span_of
from gpuledger_pipelines.resources import Warehouse, restated

DAYS = "day BETWEEN :first_day AND :last_day"


@warehouse_asset(group="layers", ledger=("hosts", "segments"))
def capacity_bucket(context: dg.AssetExecutionContext, warehouse: Warehouse) -> dg.MaterializeResult[None]:
    """Installed, unhealthy and maintained GPU-time by 15 minutes UTC, from the inventory."""
    span = span_of(context)
    with restated(span, "capacity_bucket") as tally, warehouse.writing("capacity_bucket") as rewriting:
        rewriting.delete(BUCKETS, span.binds)
        tally.rows = rewriting.insert("layers/capacity_bucket", {**span.binds, "bucket_s": BUCKET_S})
    return tally.result()


@warehouse_asset(group="layers", deps=[usage_hour, capacity_bucket, owed_hour], ledger=("hosts",))
def layer_metrics_hour(context: dg.AssetExecutionContext, warehouse: Warehouse) -> dg.MaterializeResult[None]:
    """The partition of installed GPU-time by hour UTC, with owed, delivered and used."""
    span = span_of(context)
    with restated(span, "layer_metrics_hour") as tally, warehouse.writing("layer_metrics_hour") as rewriting:
        rewriting.delete(HOURS, span.binds)
        tally.rows = rewriting.insert("layers/layer_metrics_hour", span.binds)
    return tally.result()


@warehouse_asset(group="layers", deps=[usage_bucket, capacity_bucket, layer_metrics_hour], ledger=("hosts",))
def layer_metrics_day(context: dg.AssetExecutionContext, warehouse: Warehouse) -> dg.MaterializeResult[None]:
    """The same by day of the organisation's zone; every day that the range touches is restated as a whole."""
    span = span_of(context)
    with restated(span, "layer_metrics_day") as tally, warehouse.writing("layer_metrics_day") as rewriting:
        days = days_touched(rewriting.calendar(), span)
        edges = {"first_day": days["days"][0], "last_day": days["days"][-1]}
        rewriting.delete(DAYS, {**span.binds, **edges})
        tally.rows = rewriting.insert("layers/layer_metrics_day", {**span.binds, **days})
    return tally.result()


def days_touched(calendar: Calendar, span: Span) -> dict[str, list[dt.date] | list[int]]:
    """Return the organisation's days that the span touches, each from its first instant to its last.

    Raises:
        dagster.Failure: When a day's edge is inside a bucket, which no zone in use today has.
    """
    first, last = calendar.day_of(span.from_s), calendar.day_of(span.to_s - 1)
    days = [first + dt.timedelta(days=n) for n in range((last - first).days + 1)]
    edges = [calendar.day_start_s(day) for day in [*days, last + dt.timedelta(days=1)]]
    if odd := [edge_s for edge_s in edges if edge_s % BUCKET_S]:
        raise dg.Failure(
            f"days of {calendar.timezone} do not begin on a quarter of an hour: {odd[0]} s",
            allow_retries=False,
        )
    return {"days": days, "starts": edges[:-1], "ends": edges[1:]}


ASSETS = (capacity_bucket, layer_metrics_hour, layer_metrics_day)
