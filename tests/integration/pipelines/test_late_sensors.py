"""The sensor's ticks against a real ledger: what it asks for is run, and what fails is asked for again."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from tests.integration.ledger.books import CLUSTER, Ledger, at, granted, registered, run_of, told
from tests.integration.pipelines.rows import DAY_S

from gpuledger.events.budget import AccountCreated
from gpuledger.kernel.clock import FixedClock, instant
from gpuledger_pipelines import declaring
from gpuledger_pipelines.definitions import defs
from gpuledger_pipelines.defs.late import watching
from gpuledger_pipelines.defs.late.sensors import ASKED_TAG, tick, watermark
from gpuledger_pipelines.event_log import BATCH_SIZE, BATCH_VARIABLE
from gpuledger_pipelines.partitions import CLUSTERS, RANGE_END_TAG, RANGE_START_TAG
from gpuledger_pipelines.resources import Warehouse
from gpuledger_pipelines.schedules import ROLL_UP

START_S = at("2026-11-27T00:00:00Z")
NOW_S = START_S + 5 * DAY_S


NOWHERE = "postgresql+psycopg://nobody@127.0.0.1:1/nothing?connect_timeout=1"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step is tried again without a pause."""
    monkeypatch.setattr(declaring, "RETRY_AFTER_S", 0)


class Watcher:
    """A sensor as the daemon drives it: cursor, partitions and runs are kept."""

    def __init__(self, ledger: Ledger, instance: dg.DagsterInstance) -> None:
        self.ledger, self.instance, self.cursor, self.now_s = ledger, instance, None, NOW_S

    def tick(self) -> list[dg.RunRequest]:
        with dg.build_sensor_context(instance=self.instance, cursor=self.cursor, definitions=defs) as context:
            result = tick(context, Warehouse(url=self.ledger.url), FixedClock(instant(self.now_s)))
        self.cursor = result.cursor
        for request in result.dynamic_partitions_requests or ():
            self.instance.add_dynamic_partitions(CLUSTERS, list(request.partition_keys))
        return list(result.run_requests or ())

    def run(self, request: dg.RunRequest, url: str | None = None) -> dg.ExecuteInProcessResult:
        """Do as the daemon would; of a part of a job the resources cannot be replaced."""
        return defs.resolve_job_def(ROLL_UP).execute_in_process(
            instance=self.instance,
            tags=request.tags,
            asset_selection=list(request.asset_selection) if request.asset_selection else None,
            resources=None
            if request.asset_selection
            else {"warehouse": Warehouse(url=url or self.ledger.url)},
            raise_on_error=False,
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )


@pytest.fixture
def watcher(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watcher]:
    monkeypatch.setenv("GPULEDGER_DATABASE_URL", database_url)
    ledger = Ledger(database_url)
    ledger.append(told(0, AccountCreated(account="org")), told(0, AccountCreated(account="org/vision")))
    ledger.append(told(START_S, registered("h1", 8)))
    ledger.append(*run_of(START_S + 3600, START_S + 7200, "w1"))
    batching = {"module": "gpuledger_pipelines.event_log", "class": "BatchingSqliteEventLogStorage"}
    overrides = {"event_log_storage": {**batching, "config": {"base_dir": str(tmp_path / "events")}}}
    monkeypatch.setenv(BATCH_VARIABLE, BATCH_SIZE)
    with dg.DagsterInstance.local_temp(str(tmp_path), overrides=overrides) as instance:
        yield Watcher(ledger, instance)
    ledger.engine.dispose()


def asked(request: dg.RunRequest) -> tuple[str, str]:
    return request.tags[RANGE_START_TAG], request.tags[RANGE_END_TAG]


def test_days_are_rolled_up_once_and_again_when_a_late_fact_touches_them(watcher: Watcher) -> None:
    (whole,) = watcher.tick()
    assert asked(whole) == ("alpha|2026-11-27", "alpha|2026-12-01")
    assert watcher.instance.get_dynamic_partitions(CLUSTERS) == [CLUSTER]
    assert watcher.run(whole).success
    assert watcher.tick() == []

    watcher.ledger.append(*run_of(START_S + DAY_S, START_S + DAY_S + 60, "late"))
    watcher.ledger.append(*run_of(START_S + 3 * DAY_S, START_S + 4 * DAY_S + 60, "later"))
    watcher.now_s += 60
    one, two = watcher.tick()
    assert asked(one) == ("alpha|2026-11-28", "alpha|2026-11-28")
    assert asked(two) == ("alpha|2026-11-30", "alpha|2026-12-01")
    assert [watcher.run(each).success for each in (one, two)] == [True, True]
    assert watcher.ledger.value("SELECT sum(gpu_ms) FROM warehouse.usage_bucket") == 8000 * (
        3600 + 60 + DAY_S + 60
    )

    watcher.now_s += DAY_S
    (next_day,) = watcher.tick()
    assert asked(next_day) == ("alpha|2026-12-02", "alpha|2026-12-02")


def test_nothing_more_is_asked_for_while_a_run_is_at_work(watcher: Watcher) -> None:
    (request,) = watcher.tick()
    watcher.instance.create_run_for_job(
        defs.resolve_job_def(ROLL_UP), tags=dict(request.tags), status=dg.DagsterRunStatus.STARTED
    )
    watcher.ledger.append(*run_of(START_S + 2 * DAY_S, START_S + 2 * DAY_S + 60, "late"))
    watcher.now_s += DAY_S
    assert watcher.tick() == []


def test_days_whose_run_failed_are_asked_for_again(watcher: Watcher) -> None:
    (request,) = watcher.tick()
    assert not watcher.run(request, url=NOWHERE).success
    watcher.now_s += 60
    assert watcher.tick() == []
    watcher.now_s += watching.AGAIN_AFTER_S
    (again,) = watcher.tick()
    assert asked(again) == asked(request)
    assert again.run_key != request.run_key
    assert again.tags[ASKED_TAG] == again.run_key
    assert watcher.run(again).success
    watcher.now_s += watching.AGAIN_AFTER_S
    assert watcher.tick() == []


def test_a_grant_to_a_period_that_is_over_restates_budgets_alone(watcher: Watcher) -> None:
    (request,) = watcher.tick()
    assert watcher.run(request).success
    watcher.ledger.append(told(START_S, granted("org/vision", "2026-11", 5000)))
    (budgets,) = watcher.tick()
    assert asked(budgets) == ("alpha|2026-11-01", "alpha|2026-11-01")
    result = watcher.run(budgets)
    assert result.success
    assert [event.asset_key.path for event in result.get_asset_materialization_events()] == [
        ["budget_vs_actual"]
    ]
    assert (
        watcher.ledger.value(
            "SELECT budget_gpu_ms FROM warehouse.budget_vs_actual WHERE account = 'org/vision' AND period = '2026-11'"
        )
        == 5000
    )


def test_a_step_is_tried_again_when_the_database_is_not_there_and_told_at_once_to_who_waits(
    watcher: Watcher,
) -> None:
    (request,) = watcher.tick()

    def retries(tags: dict[str, str]) -> int:
        result = watcher.run(request._replace(tags={**request.tags, **tags}), url=NOWHERE)
        assert not result.success
        first = [event for event in result.get_step_failure_events() if event.step_key == "usage_bucket"]
        assert len(first) == 1
        return sum(e.is_step_up_for_retry for e in result.all_events if e.step_key == "usage_bucket")

    assert retries({}) == declaring.RETRIES
    assert retries({declaring.ONCE_TAG: "yes"}) == 0


def test_it_is_off_until_somebody_turns_it_on() -> None:
    assert watermark.default_status is dg.DefaultSensorStatus.STOPPED
    assert watermark.name in {sensor.name for sensor in defs.sensors or ()}
