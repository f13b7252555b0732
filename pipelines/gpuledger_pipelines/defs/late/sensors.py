"""The sensor on the ledger's watermark: a day is rolled up once it is over, and again when a late fact touches it.

Off until somebody turns it on, as the schedules.
"""

import datetime as dt
from collections.abc import Sequence

import dagster as dg
from dagster import DagsterRunStatus, RunsFilter

from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, SystemClock, seconds
from gpuledger_pipelines.defs.budget.assets import budget_vs_actual
from gpuledger_pipelines.defs.late import watching
from gpuledger_pipelines.defs.late.touched import Mark, Touched, present, touched
from gpuledger_pipelines.defs.late.watching import Asked, Cursor, Outcome, Watched
from gpuledger_pipelines.partitions import CLUSTERS, NOW_TAG, range_tags, utc_days
from gpuledger_pipelines.resources import Warehouse, calendar
from gpuledger_pipelines.schedules import ROLL_UP

ASKED_TAG = "gpuledger/asked"
"""Run tag: what the sensor calls the run; Dagster's own retries of it carry it too."""

INTERVAL_S = 60

_FAILED = (DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED)


@dg.sensor(
    job_name=ROLL_UP,
    minimum_interval_seconds=INTERVAL_S,
    default_status=dg.DefaultSensorStatus.STOPPED,
    description=(
        "Days of each cluster that every source has told of to the end, once; and exactly the days that late facts"
        " touch, however old. One run for days that follow each other."
    ),
)
def watermark(context: dg.SensorEvaluationContext, warehouse: Warehouse) -> dg.SensorResult:
    """Ask for what is to be restated since the last tick."""
    return tick(context, warehouse, SystemClock())


def tick(context: dg.SensorEvaluationContext, warehouse: Warehouse, clock: Clock) -> dg.SensorResult:
    """Look at every cluster once.

    Args:
        context: Dagster's, with the cursor of the last tick.
        warehouse: Where the ledger is read.
        clock: Whose present the runs count up to.
    """
    now_s = seconds(clock.now())
    cursor: Cursor = watching.read(context.cursor)
    requests: list[dg.RunRequest] = []
    waiting: list[str] = []
    # One snapshot: what a mark stands for is exactly what was compared.
    with (
        warehouse.engine().connect() as connection,
        connection.execution_options(isolation_level="REPEATABLE READ").begin(),
    ):
        days = calendar(connection)
        for cluster, mark in present(connection, now_s).items():
            outcomes = {each.key: _outcome(context.instance, each) for each in _of(cursor, cluster).asked}
            watched = watching.settled(_of(cursor, cluster), outcomes)
            cursor[cluster] = watched
            if busy := watching.at_work(watched, outcomes):
                waiting.append(f"{cluster}: {', '.join(busy)} at work")
                continue
            now = _onward(watched.mark, mark)
            if now == watched.mark and not watching.due_again(watched, now_s):
                continue
            found = (
                touched(connection, days, cluster, watched.mark, now) if now != watched.mark else Touched()
            )
            cursor[cluster], runs = watching.ask(
                cluster, watched, now, found, _days_of(days, found.periods), now_s
            )
            requests += [_request(cluster, each, now_s) for each in runs]
    return dg.SensorResult(
        run_requests=requests,
        skip_reason=None
        if requests
        else "; ".join(waiting) or "no day is over, and no late fact touches one",
        cursor=watching.write(cursor),
        dynamic_partitions_requests=[
            dg.AddDynamicPartitionsRequest(
                CLUSTERS, sorted({each.tags["gpuledger/cluster"] for each in requests})
            )
        ]
        if requests
        else None,
    )


def _of(cursor: Cursor, cluster: str) -> Watched:
    return cursor.get(cluster, Watched())


def _onward(before: Mark | None, now: Mark) -> Mark:
    """Return the mark to go to: a source that is heard of for the first time turns no day back."""
    if before is None:
        return now
    return Mark(now.seq, now.org_seq, max(before.until_s, now.until_s))


def _outcome(instance: dg.DagsterInstance, asked: Asked) -> Outcome:
    """Say how a run stands; one that Dagster does not know any more is taken to have failed."""
    statuses = [run.status for run in instance.get_runs(RunsFilter(tags={ASKED_TAG: asked.key}))]
    if DagsterRunStatus.SUCCESS in statuses:
        return Outcome.DONE
    return Outcome.FAILED if all(status in _FAILED for status in statuses) else Outcome.AT_WORK


def _days_of(days: Calendar, periods: Sequence[str]) -> dict[str, dt.date]:
    return {period: utc_days(*days.period_bounds_s(period))[0] for period in periods}


def _request(cluster: str, asked: Asked, now_s: int) -> dg.RunRequest:
    return dg.RunRequest(
        run_key=asked.key,
        tags={
            **range_tags(cluster, asked.first, asked.last),
            NOW_TAG: str(now_s),
            ASKED_TAG: asked.key,
            "gpuledger/cluster": cluster,
        },
        asset_selection=None if asked.period is None else [budget_vs_actual.key],
    )
