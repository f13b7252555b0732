"""The sensor asks for a run where something is new or due, and not for the same thing again and again."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from tests.integration.notify.receiving import Receiver
from tests.integration.notify.spending import roll_up
from tests.integration.pipelines.notifying import told
from tests.integration.pipelines.rows import Database

from gpuledger import settings
from gpuledger.database.engine import make_engine
from gpuledger.kernel.clock import FixedClock
from gpuledger_pipelines.definitions import defs
from gpuledger_pipelines.defs.notices import job
from gpuledger_pipelines.defs.notices.job import TELL
from gpuledger_pipelines.defs.notices.sensors import notices
from gpuledger_pipelines.resources import Warehouse

NOW = dt.datetime(2026, 12, 3, 12, 30, tzinfo=dt.UTC)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FixedClock:
    found = FixedClock(NOW)
    monkeypatch.setattr(job, "SystemClock", lambda: found)
    return found


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with told(tmp_path, monkeypatch) as found:
        yield found


def tick(database: Database) -> Any:  # noqa: ANN401 - Dagster exports no name for it
    with (
        dg.DagsterInstance.ephemeral() as instance,
        dg.build_sensor_context(
            instance=instance, resources={"warehouse": Warehouse(url=database.url)}, definitions=defs
        ) as context,
    ):
        return notices.evaluate_tick(context)


def spend(database: Database, account: str = "lone") -> None:
    engine = make_engine(database.url)
    roll_up(engine, account, 60)
    engine.dispose()


def key(database: Database) -> str:
    (request,) = tick(database).run_requests
    return str(request.run_key)


def test_what_is_new_is_asked_for_and_sent_by_the_run(
    database: Database, clock: FixedClock, there: Receiver
) -> None:
    assert "nothing is new" in tick(database).skip_message
    spend(database)
    (request,) = tick(database).run_requests
    result = defs.resolve_job_def(TELL).execute_in_process(
        run_config={**request.run_config, "loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        resources={"warehouse": Warehouse(url=database.url)},
    )
    assert result.success
    assert len(there.received) == 1
    assert "nothing is due" in tick(database).skip_message


def test_the_same_is_asked_for_once_an_hour_and_something_else_at_once(
    database: Database, clock: FixedClock, there: Receiver
) -> None:
    spend(database)
    first = key(database)
    clock.at += dt.timedelta(minutes=29)
    assert key(database) == first
    clock.at += dt.timedelta(minutes=1)
    later = key(database)
    assert later != first
    spend(database, "other")
    assert key(database) not in (first, later)


def test_where_nobody_is_to_be_told_it_says_so(database: Database) -> None:
    settings.load.cache_clear()
    spend(database)
    assert "GPULEDGER_NOTIFICATIONS" in tick(database).skip_message


def test_it_is_off_until_somebody_turns_it_on() -> None:
    assert notices.default_status is dg.DefaultSensorStatus.STOPPED
    assert notices.job_name == TELL
