"""Usage: the ledger's segments and samples, cut into buckets of 15 minutes, and summed to hours."""

from gpuledger_pipelines.declaring import warehouse_asset
from gpuledger_pipelines.defs.usage.checks import USAGE_BUCKET, USAGE_HOUR
from gpuledger_pipelines.gate import BUCKETS, HOURS
from gpuledger_pipelines.partitions import BUCKET_S, Span
from gpuledger_pipelines.resources import Rewriting


@warehouse_asset(group="usage", gate=USAGE_BUCKET, ledger=("segments", "buckets"))
def usage_bucket(rewriting: Rewriting, span: Span) -> int:
    """Occupied GPU-time by 15 minutes UTC, account and class; sampled and used beside it."""
    rewriting.delete(BUCKETS, span.binds)
    rewriting.insert("usage/watermark", span.binds)
    return rewriting.insert("usage/usage_bucket", {**span.binds, "bucket_s": BUCKET_S})


@warehouse_asset(group="usage", gate=USAGE_HOUR, deps=[usage_bucket])
def usage_hour(rewriting: Rewriting, span: Span) -> int:
    """Sums of four buckets."""
    rewriting.delete(HOURS, span.binds)
    return rewriting.insert("usage/usage_hour", span.binds)


ASSETS = (usage_bucket, usage_hour)
