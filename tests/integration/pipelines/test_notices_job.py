"""The job tells as the command does: dry unless it is configured to send."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from tests.integration.notify.receiving import Receiver
from tests.integration.notify.spending import roll_up
from tests.integration.pipelines.notifying import told
from tests.integration.pipelines.rows import Database

from gpuledger import settings
from gpuledger.database.engine import make_engine
from gpuledger.kernel.clock import SystemClock
from gpuledger_pipelines.definitions import defs
from gpuledger_pipelines.defs.notices.job import TELL
from gpuledger_pipelines.resources import Warehouse


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with told(tmp_path, monkeypatch) as found:
        yield found


def spend(database: Database) -> None:
    engine = make_engine(database.url)
    roll_up(engine, "lone", 60, period=f"{SystemClock().now():%Y-%m}")
    engine.dispose()


def ran(database: Database, **config: object) -> dg.ExecuteInProcessResult:
    return defs.resolve_job_def(TELL).execute_in_process(
        run_config={
            "ops": {"notices": {"config": config}},
            "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
        },
        resources={"warehouse": Warehouse(url=database.url)},
    )


def counts(result: dg.ExecuteInProcessResult) -> dict[str, object]:
    (event,) = [each for each in result.all_node_events if each.event_type_value == "STEP_OUTPUT"]
    return {name: value.value for name, value in event.step_output_data.metadata.items()}


def test_unless_it_is_told_to_it_sends_nothing(database: Database, there: Receiver) -> None:
    spend(database)
    found = counts(ran(database))
    assert (found["dry run"], found["noticed"], found["sent"]) == (True, 1, 0)
    assert there.received == []


def test_what_is_new_is_sent_once(database: Database, there: Receiver) -> None:
    spend(database)
    assert counts(ran(database, send=True))["sent"] == 1
    assert counts(ran(database, send=True))["sent"] == 0
    assert [each.json["type"] for each in there.received] == ["budget.threshold"]


def test_a_receiver_that_is_away_is_no_failure_of_the_run(database: Database, there: Receiver) -> None:
    spend(database)
    there.answers = [404]
    result = ran(database, send=True)
    assert result.success
    assert counts(result)["said"] == "- webhook/chat: answers 404"


def test_where_nobody_is_to_be_told_it_does_nothing(database: Database) -> None:
    settings.load.cache_clear()
    spend(database)
    assert ran(database, send=True).success
    assert database.query("SELECT count(*) FROM notify.notices") == [(0,)]
