"""The nightly look of the archive: days that are over since, and those that late facts touch, of every cluster."""

import dagster as dg

from gpuledger.kernel.clock import SystemClock, seconds
from gpuledger.kernel.errors import Conflict, GpuledgerError, Unavailable
from gpuledger.settings import load
from gpuledger_pipelines.archive.layout import checked_root
from gpuledger_pipelines.defs.archive.assets import ARCHIVE, told
from gpuledger_pipelines.defs.archive.updating import known_clusters, update
from gpuledger_pipelines.partitions import NOW_TAG, partition_key
from gpuledger_pipelines.resources import Warehouse

FOLLOW_BOOK = "archive_what_is_new"

AGAIN = dg.RetryPolicy(max_retries=3, delay=30)
"""A database or a folder that cannot be had now, or another writer at work, is waited for."""


@dg.op(retry_policy=AGAIN)
def follow_book(context: dg.OpExecutionContext, warehouse: Warehouse) -> None:
    """Write what the archive does not have, or has otherwise than the book says; each day that was written is told.

    Raises:
        dagster.Failure: When a setting or a mark is wrong, which trying again does not mend.
        Unavailable: When the database or the folder cannot be had now.
        Conflict: When another writer does not come to an end.
    """
    now_s = int(context.run.tags.get(NOW_TAG) or seconds(SystemClock().now()))
    try:
        root = checked_root(load().archive_folder)
        for cluster in known_clusters(warehouse.engine()):
            done = update(warehouse.engine(), root, cluster, now_s)
            for day in done.changed:
                context.log_event(
                    dg.AssetMaterialization(
                        ARCHIVE, partition=partition_key(cluster, day), metadata=told(done)
                    )
                )
    except (Unavailable, Conflict):
        raise
    except GpuledgerError as error:
        raise dg.Failure(error.message, metadata={"hint": error.hint}, allow_retries=False) from error


@dg.job(name=FOLLOW_BOOK, description="Bring the archive up to date: gpuledger archive write.")
def archive_what_is_new() -> None:
    """Look at every cluster."""
    follow_book()


archived = dg.ScheduleDefinition(
    name="archived",
    job_name=FOLLOW_BOOK,
    cron_schedule="10 3 * * *",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Once a night: days that are over since, and those that late facts touch, as Parquet.",
)
