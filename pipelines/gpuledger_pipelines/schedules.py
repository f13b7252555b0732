"""When the warehouse is rolled up by itself.

Both schedules are off until somebody turns them on: an installation that holds only finished traces has
nothing new to add every hour. ``infra/dagster`` says how.
"""

import datetime as dt
from collections.abc import Iterator

import dagster as dg
import sqlalchemy as sa

from gpuledger.kernel.clock import seconds
from gpuledger_pipelines.partitions import CLUSTERS, NOW_TAG, range_tags
from gpuledger_pipelines.resources import Warehouse

ROLL_UP = "roll_up"
LATE_DAYS = 35
"""How far back the daily roll-up restates: late facts are older than a month only by exception."""

Ticks = Iterator[dg.RunRequest]


@dg.schedule(
    cron_schedule="10 * * * *",
    job_name=ROLL_UP,
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Today and yesterday of every cluster, ten minutes past the hour.",
)
def hourly(context: dg.ScheduleEvaluationContext, warehouse: Warehouse) -> Ticks:
    """Ask for one run per cluster over today and yesterday."""
    yield from _requests(context, warehouse, days=1)


@dg.schedule(
    cron_schedule="40 1 * * *",
    job_name=ROLL_UP,
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="The last 35 days of every cluster, once a night, for facts that came late.",
)
def nightly(context: dg.ScheduleEvaluationContext, warehouse: Warehouse) -> Ticks:
    """Ask for one run per cluster over the last weeks."""
    yield from _requests(context, warehouse, days=LATE_DAYS)


def _requests(context: dg.ScheduleEvaluationContext, warehouse: Warehouse, *, days: int) -> Ticks:
    at = context.scheduled_execution_time.astimezone(dt.UTC)
    with warehouse.engine().connect() as connection:
        clusters = connection.execute(sa.text(CLUSTERS_WITH_USAGE)).scalars().all()
    context.instance.add_dynamic_partitions(CLUSTERS, list(clusters))
    for cluster in clusters:
        yield dg.RunRequest(
            run_key=f"{cluster}/{days}/{at.isoformat()}",
            tags={
                **range_tags(cluster, at.date() - dt.timedelta(days=days), at.date()),
                NOW_TAG: str(seconds(at)),
                "gpuledger/cluster": cluster,
            },
        )


CLUSTERS_WITH_USAGE = """
    SELECT book FROM ledger_read.books
    WHERE EXISTS (SELECT FROM ledger_read.segments WHERE cluster = book)
    ORDER BY book
"""
