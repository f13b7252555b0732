"""Days of the archive are partitions like those of every table, and written by the same code as by the command."""

import datetime as dt
from pathlib import Path

import dagster as dg
import pytest
from tests.integration.pipelines.rows import DAY, DAY_S, HOUR_S, START_S, Database, Facts, Segment

from gpuledger import settings
from gpuledger_pipelines.archive.verifying import verify
from gpuledger_pipelines.defs.archive.assets import archive
from gpuledger_pipelines.partitions import CLUSTERS, NOW_TAG, range_tags
from gpuledger_pipelines.resources import Warehouse

NOW_S = START_S + 2 * DAY_S + HOUR_S


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPULEDGER_ARCHIVE", str(tmp_path / "archive"))
    settings.load.cache_clear()
    return tmp_path / "archive"


def materialise(database: Database, first: dt.date, last: dt.date) -> dg.ExecuteInProcessResult:
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions(CLUSTERS, ["c"])
        return dg.materialize(
            [archive],
            instance=instance,
            raise_on_error=False,
            tags={**range_tags("c", first, last), NOW_TAG: str(NOW_S)},
            resources={"warehouse": Warehouse(url=database.url)},
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )


def test_a_range_of_days_is_one_run_without_the_day_that_goes_on(database: Database, root: Path) -> None:
    database.put(Facts(segments=[Segment("c/a", 1000, START_S, None)]))
    result = materialise(database, DAY, DAY + dt.timedelta(days=2))
    assert result.success
    told = result.asset_materializations_for_node("archive")[0].metadata
    assert {name: told[name].value for name in ("days", "files_written", "rows")} == {
        "days": 2, "files_written": 4, "rows": 2,
    }  # fmt: skip
    assert (verify(root).ok, verify(root).files) == (True, 4)


def test_a_day_that_is_not_over_fails_and_is_not_tried_again(database: Database, root: Path) -> None:
    database.put(Facts(segments=[Segment("c/a", 1000, START_S, None)]))
    today = DAY + dt.timedelta(days=2)
    result = materialise(database, today, today)
    (failed,) = result.get_step_failure_events()
    assert "2024-03-03 is not over" in str(failed.step_failure_data.error)
    assert not root.exists()
