"""The four layers: what was installed, what became of it, and the sums that the readings are ratios of."""

import datetime as dt

import dagster as dg

from gpuledger.kernel.calendar import Calendar
from gpuledger_pipelines.declaring import warehouse_asset
from gpuledger_pipelines.defs.layers.checks import CAPACITY_BUCKET, LAYER_METRICS_DAY, LAYER_METRICS_HOUR
from gpuledger_pipelines.defs.owed.assets import owed_hour
from gpuledger_pipelines.defs.usage.assets import usage_bucket, usage_hour
from gpuledger_pipelines.gate import BUCKETS, DAYS, HOURS
from gpuledger_pipelines.partitions import BUCKET_S, HOUR_S, Span
from gpuledger_pipelines.resources import Rewriting


@warehouse_asset(group="layers", gate=CAPACITY_BUCKET, ledger=("hosts", "segments"))
def capacity_bucket(rewriting: Rewriting, span: Span) -> int:
    """Installed, unhealthy and maintained GPU-time by 15 minutes UTC, from the inventory."""
    rewriting.delete(BUCKETS, span.binds)
    return rewriting.insert("layers/capacity_bucket", {**span.binds, "bucket_s": BUCKET_S})


@warehouse_asset(
    group="layers", gate=LAYER_METRICS_HOUR, deps=[usage_hour, capacity_bucket, owed_hour], ledger=("hosts",)
)
def layer_metrics_hour(rewriting: Rewriting, span: Span) -> int:
    """The partition of installed GPU-time by hour UTC, with owed, delivered and used."""
    rewriting.delete(HOURS, span.binds)
    return rewriting.insert("layers/layer_metrics_hour", {**span.binds, "bucket_s": HOUR_S})


@warehouse_asset(
    group="layers",
    gate=LAYER_METRICS_DAY,
    deps=[usage_bucket, capacity_bucket, layer_metrics_hour],
    ledger=("hosts",),
)
def layer_metrics_day(rewriting: Rewriting, span: Span) -> int:
    """The same by day of the organisation's zone; every day that the range touches is restated as a whole."""
    days = days_touched(rewriting.calendar(), span)
    edges = {"first_day": days["days"][0], "last_day": days["days"][-1]}
    rewriting.delete(DAYS, {**span.binds, **edges})
    whole = {"from_s": days["starts"][0], "to_s": days["ends"][-1], "bucket_s": BUCKET_S}
    return rewriting.insert("layers/layer_metrics_day", {**span.binds, **days, **whole})


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
