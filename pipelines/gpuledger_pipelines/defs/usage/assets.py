"""Usage: the ledger's segments and samples, cut into buckets of 15 minutes, and summed to hours."""

import dagster as dg

from gpuledger_pipelines.partitions import BUCKET_S, span_of
from gpuledger_pipelines.resources import Warehouse, restated
from gpuledger_pipelines.declaring import BUCKETS, HOURS, warehouse_asset


@warehouse_asset(group="usage", ledger=("segments", "buckets"))
def usage_bucket(context: dg.AssetExecutionContext, warehouse: Warehouse) -> dg.MaterializeResult[None]:
    """Occupied GPU-time by 15 minutes UTC, account and class; sampled and used beside it."""
    span = span_of(context)
    with restated(span, "usage_bucket") as tally, warehouse.writing("usage_bucket") as rewriting:
        rewriting.delete(BUCKETS, span.binds)
        rewriting.insert("usage/watermark", span.binds)
        tally.rows = rewriting.insert("usage/usage_bucket", {**span.binds, "bucket_s": BUCKET_S})
    return tally.result()


@warehouse_asset(group="usage", deps=[usage_bucket])
def usage_hour(context: dg.AssetExecutionContext, warehouse: Warehouse) -> dg.MaterializeResult[None]:
    """Sums of four buckets."""
    span = span_of(context)
    with restated(span, "usage_hour") as tally, warehouse.writing("usage_hour") as rewriting:
        rewriting.delete(HOURS, span.binds)
        tally.rows = rewriting.insert("usage/usage_hour", span.binds)
    return tally.result()


ASSETS = (usage_bucket, usage_hour)
