"""The four layers: what was installed, what became of it, and the sums that the readings are ratios of."""

from gpuledger_pipelines.declaring import warehouse_asset
from gpuledger_pipelines.defs.layers.checks import GPU_BUCKET, GPU_HOUR, LAYER_METRICS_DAY, LAYER_METRICS_HOUR
from gpuledger_pipelines.defs.owed.assets import owed_hour
from gpuledger_pipelines.defs.usage.assets import usage_bucket, usage_hour
from gpuledger_pipelines.gate import BUCKETS, DAYS, HOURS
from gpuledger_pipelines.partitions import BUCKET_S, Span, days_touched
from gpuledger_pipelines.resources import Rewriting
from gpuledger_pipelines.seats import seats_told


@warehouse_asset(
    group="layers", gate=GPU_BUCKET, deps=[usage_bucket], ledger=("hosts", "segments", "placements")
)
def gpu_bucket(rewriting: Rewriting, span: Span) -> int:
    """The state that every installed GPU was in, by 15 minutes UTC."""
    rewriting.delete(BUCKETS, span.binds)
    return rewriting.insert(
        "layers/gpu_bucket", {**span.binds, **seats_told(rewriting, span), "bucket_s": BUCKET_S}
    )


@warehouse_asset(group="layers", gate=GPU_HOUR, deps=[gpu_bucket], ledger=("hosts",))
def gpu_hour(rewriting: Rewriting, span: Span) -> int:
    """Sums of four buckets."""
    rewriting.delete(HOURS, span.binds)
    return rewriting.insert("layers/gpu_hour", span.binds)


@warehouse_asset(
    group="layers", gate=LAYER_METRICS_HOUR, deps=[usage_hour, gpu_hour, owed_hour], ledger=("hosts",)
)
def layer_metrics_hour(rewriting: Rewriting, span: Span) -> int:
    """The partition of installed GPU-time by hour UTC, with owed, delivered and used."""
    rewriting.delete(HOURS, span.binds)
    return rewriting.insert("layers/layer_metrics_hour", span.binds)


@warehouse_asset(
    group="layers",
    gate=LAYER_METRICS_DAY,
    deps=[usage_bucket, gpu_bucket, layer_metrics_hour],
    ledger=("hosts",),
)
def layer_metrics_day(rewriting: Rewriting, span: Span) -> int:
    """The same by day of the organisation's zone; every day that the range touches is restated as a whole."""
    days = days_touched(rewriting.calendar(), span)
    rewriting.delete(DAYS, {**span.binds, **days})
    return rewriting.insert("layers/layer_metrics_day", {**span.binds, **days})


ASSETS = (gpu_bucket, gpu_hour, layer_metrics_hour, layer_metrics_day)
