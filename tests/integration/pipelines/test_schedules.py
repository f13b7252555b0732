import datetime as dt
from pathlib import Path

import dagster as dg
import pytest
from tests.integration.pipelines.rows import START_S, Database, Facts, Segment

from gpuledger_pipelines.definitions import defs
from gpuledger_pipelines.partitions import CLUSTERS, NOW_TAG, RANGE_END_TAG, RANGE_START_TAG
from gpuledger_pipelines.resources import Warehouse
from gpuledger_pipelines.schedules import ROLL_UP, hourly, nightly

TICK = dt.datetime(2024, 3, 2, 7, 10, tzinfo=dt.UTC)


def requests(
    schedule: dg.ScheduleDefinition, database: Database, instance: dg.DagsterInstance
) -> list[dg.RunRequest]:
    with dg.build_schedule_context(
        instance=instance,
        scheduled_execution_time=TICK,
        resources={"warehouse": Warehouse(url=database.url)},
    ) as context:
        return list(schedule.evaluate_tick(context).run_requests or ())


@pytest.mark.parametrize(
    ("schedule", "first"), [(hourly, "2024-03-01"), (nightly, "2024-01-27")], ids=["hourly", "nightly"]
)
def test_a_tick_asks_for_one_run_per_cluster_with_usage(
    database: Database, schedule: dg.ScheduleDefinition, first: str, tmp_path: Path
) -> None:
    database.put(Facts(segments=[Segment("c/a", 1000, START_S, None)]))
    database.put(Facts(cluster="idle"))
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        (request,) = requests(schedule, database, instance)
        assert instance.get_dynamic_partitions(CLUSTERS) == ["c"]
    assert request.tags[RANGE_START_TAG] == f"c|{first}"
    assert request.tags[RANGE_END_TAG] == "c|2024-03-02"
    assert request.tags[NOW_TAG] == str(int(TICK.timestamp()))


def test_what_a_tick_asks_for_runs(database: Database, tmp_path: Path) -> None:
    database.put(Facts(segments=[Segment("c/a", 1000, START_S, None)], accounts=["c/a"]))
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        (request,) = requests(hourly, database, instance)
        result = defs.resolve_job_def(ROLL_UP).execute_in_process(
            instance=instance, tags=request.tags, resources={"warehouse": Warehouse(url=database.url)}
        )
    assert result.success
    assert sum(r["gpu_ms"] for r in database.table("usage_hour")) == 1000 * (int(TICK.timestamp()) - START_S)
