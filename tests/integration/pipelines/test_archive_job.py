"""The nightly job writes what is new, tells each day that it wrote as a partition, and is off at first."""

from pathlib import Path

import dagster as dg
import pytest
from tests.integration.pipelines.rows import DAY_S, HOUR_S, START_S, Database, Facts, Segment
from tests.integration.pipelines.test_archive_assets import root

from gpuledger_pipelines.archive.verifying import verify
from gpuledger_pipelines.definitions import defs
from gpuledger_pipelines.defs.archive.job import FOLLOW_BOOK, archived
from gpuledger_pipelines.partitions import NOW_TAG
from gpuledger_pipelines.resources import Warehouse

__all__ = ["root"]


def follow(database: Database, now_s: int) -> tuple[bool, list[str]]:
    result = defs.resolve_job_def(FOLLOW_BOOK).execute_in_process(
        raise_on_error=False,
        tags={NOW_TAG: str(now_s)},
        resources={"warehouse": Warehouse(url=database.url)},
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
    )
    days = [
        str(event.step_materialization_data.materialization.partition)
        for event in result.get_asset_materialization_events()
    ]
    return result.success, days


def test_each_day_that_was_written_is_told(database: Database, root: Path) -> None:
    for cluster in ("c", "d"):
        database.put(Facts(segments=[Segment("c/a", 1000, START_S + HOUR_S, None)], cluster=cluster))
    assert follow(database, START_S + DAY_S) == (True, ["c|2024-03-01", "d|2024-03-01"])
    assert follow(database, START_S + DAY_S + 1) == (True, [])
    assert follow(database, START_S + 2 * DAY_S) == (True, ["c|2024-03-02", "d|2024-03-02"])
    assert verify(root).ok


def test_a_mark_that_says_nothing_stops_it(database: Database, root: Path) -> None:
    database.put(Facts(segments=[Segment("c/a", 1000, START_S + HOUR_S, None)]))
    assert follow(database, START_S + DAY_S)[0]
    (root / "known" / "c.json").write_text("{}")
    assert not follow(database, START_S + 2 * DAY_S)[0]


@pytest.mark.parametrize("schedule", [archived])
def test_it_is_off_until_somebody_turns_it_on(schedule: dg.ScheduleDefinition) -> None:
    assert schedule.default_status is dg.DefaultScheduleStatus.STOPPED
    assert schedule.job_name == FOLLOW_BOOK
