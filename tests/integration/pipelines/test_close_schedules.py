"""Each hour the schedule asks for the periods that are due, by the time of its tick, once a day each."""

import datetime as dt
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from tests.integration.close.closing import NOVEMBER, Books
from tests.integration.pipelines.test_close_job import books

from gpuledger_pipelines.definitions import defs
from gpuledger_pipelines.defs.close.job import CLOSE
from gpuledger_pipelines.defs.close.schedules import closes
from gpuledger_pipelines.resources import Warehouse

__all__ = ["books"]

DUE = dt.datetime(2026, 12, 1, 0, 20, tzinfo=dt.UTC)


def tick(books: Books, at: dt.datetime, folder: Path) -> Any:  # noqa: ANN401 - Dagster exports no name for it
    with (
        dg.DagsterInstance.local_temp(str(folder)) as instance,
        dg.build_schedule_context(
            instance=instance,
            scheduled_execution_time=at,
            resources={"warehouse": Warehouse(url=books.ledger.url)},
        ) as context,
    ):
        return closes.evaluate_tick(context)


def test_a_period_that_is_over_is_asked_for_once_a_day(books: Books, tmp_path: Path) -> None:
    (request,) = tick(books, DUE, tmp_path).run_requests or ()
    assert request.run_key == f"close/alpha/{NOVEMBER}/2026-12-01"
    assert request.tags["gpuledger/period"] == NOVEMBER
    (later,) = tick(books, DUE + dt.timedelta(hours=3), tmp_path).run_requests or ()
    assert later.run_key == request.run_key
    result = defs.resolve_job_def(CLOSE).execute_in_process(
        run_config=request.run_config, raise_on_error=False
    )
    assert result.success
    assert books.made().rows.digest is not None


def test_what_is_not_over_is_waited_for_with_a_word(books: Books, tmp_path: Path) -> None:
    skipped = tick(books, DUE - dt.timedelta(hours=1), tmp_path)
    assert not skipped.run_requests
    assert "2026-11 ends 2026-12-01T00:00:00Z" in str(skipped.skip_message)


@pytest.mark.parametrize("schedule", [closes])
def test_it_is_off_until_somebody_turns_it_on(schedule: dg.ScheduleDefinition) -> None:
    assert schedule.default_status is dg.DefaultScheduleStatus.STOPPED
    assert schedule.execution_timezone == "UTC"
    assert schedule.cron_schedule == "20 * * * *"
