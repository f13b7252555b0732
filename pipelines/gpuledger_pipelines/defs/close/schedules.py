"""Periods are closed by themselves once they are over in the organisation's zone and every source has told of them.

Off until somebody turns it on, as the other schedules.
"""

import os
from collections.abc import Iterator
from dataclasses import replace

import dagster as dg

from gpuledger.close.due import due
from gpuledger.kernel.clock import FixedClock
from gpuledger.settings import load
from gpuledger_pipelines.defs.close.job import CLOSE, PeriodClose
from gpuledger_pipelines.resources import Warehouse

ZONE = os.environ.get("GPULEDGER_TIMEZONE", "UTC")
"""What the clock of the schedule is read in; the ledger's own calendar says when a period is over."""


@dg.schedule(
    cron_schedule="20 * * * *",
    job_name=CLOSE,
    execution_timezone=ZONE,
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Each hour: the earliest period of each cluster that is over, has been told of, and is not sealed.",
)
def closes(
    context: dg.ScheduleEvaluationContext, warehouse: Warehouse
) -> Iterator[dg.RunRequest | dg.SkipReason]:
    """Ask for one run per period that is due; once a day for one that does not come to its end."""
    at = context.scheduled_execution_time
    found = due(
        warehouse.engine(),
        FixedClock(at),
        load().calendar,
        lambda cluster, period: replace(
            PeriodClose(cluster=cluster, period=period).closer(warehouse), clock=FixedClock(at)
        ),
    )
    for cluster, period in found.now:
        yield dg.RunRequest(
            run_key=f"close/{cluster}/{period}/{at.date()}",
            run_config={
                "resources": {"close": {"config": {"cluster": cluster, "period": period, "by": "schedule"}}}
            },
            tags={"gpuledger/cluster": cluster, "gpuledger/period": period},
        )
    if not found.now:
        yield dg.SkipReason("; ".join(found.waiting) or "no cluster has a book")
