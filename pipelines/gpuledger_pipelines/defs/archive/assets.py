"""The archive as an asset: named days of a cluster, written whatever is known of what touched them."""

import datetime as dt
import warnings

import dagster as dg

from gpuledger.kernel.errors import Refused
from gpuledger.settings import load
from gpuledger_pipelines.archive.layout import checked_root
from gpuledger_pipelines.declaring import trying_again
from gpuledger_pipelines.defs.archive.updating import Update, write_days
from gpuledger_pipelines.partitions import DAY_AND_CLUSTER, span_of, utc_days
from gpuledger_pipelines.resources import Warehouse

ARCHIVE = "archive"

with warnings.catch_warnings():
    warnings.simplefilter("ignore", dg.BetaWarning)  # says that backfill_policy may change

    @dg.asset(
        name=ARCHIVE,
        partitions_def=DAY_AND_CLUSTER,
        backfill_policy=dg.BackfillPolicy.single_run(),
        group_name=ARCHIVE,
        deps=[dg.AssetKey(["ledger_read", name]) for name in ("segments", "buckets")],
        kinds={"parquet"},
    )
    def archive(context: dg.AssetExecutionContext, warehouse: Warehouse) -> dg.MaterializeResult:  # type: ignore[type-arg] # Dagster compares the annotation with the bare class
        """Usage and telemetry as Parquet, a file of each for a day and cluster; days that are not over are left out."""
        span = span_of(context)
        first, last = utc_days(span.from_s, span.to_s)
        end = min(last + dt.timedelta(days=1), utc_days(span.now_s, span.now_s + 1)[0])
        if first >= end:
            raise dg.Failure(f"{first} is not over", allow_retries=False)
        try:
            with trying_again(context):
                root = checked_root(load().archive_folder)
                done = write_days(warehouse.engine(), root, span.cluster, first, end, span.now_s)
        except Refused as error:
            raise dg.Failure(error.message, metadata={"hint": error.hint}, allow_retries=False) from error
        return dg.MaterializeResult(metadata=told(done))


def told(done: Update) -> dict[str, int]:
    """Return what was done, for Dagster's pages."""
    return {
        "days": done.days,
        "files_written": done.files_written,
        "files_unchanged": done.files_unchanged,
        "rows": sum(done.rows.values()),
        "bytes": sum(done.bytes.values()),
    }
