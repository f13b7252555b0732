"""The sensor's ticks against a real ledger: what it asks for is run, and what fails is asked for again."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from tests.integration.ledger.books import CLUSTER, Ledger, at, granted, registered, run_of, told
from tests.integration.pipelines.rows import DAY_S
from tests.integration.pipelines.watchers import Watcher, asked, dagster_in

from gpuledger.events.budget import AccountCreated
from gpuledger_pipelines import declaring
from gpuledger_pipelines.definitions import defs
from gpuledger_pipelines.defs.late import watching
from gpuledger_pipelines.defs.late.sensors import ASKED_TAG, watermark
from gpuledger_pipelines.partitions import CLUSTERS
from gpuledger_pipelines.schedules import ROLL_UP

START_S = at("2026-11-27T00:00:00Z")
NOW_S = START_S + 5 * DAY_S


NOWHERE = "postgresql+psycopg://nobody@127.0.0.1:1/nothing?connect_timeout=1"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step is tried again without a pause."""
    monkeypatch.setattr(declaring, "RETRY_AFTER_S", 0)


@pytest.fixture
def ledger(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    monkeypatch.setenv("GPULEDGER_DATABASE_URL", database_url)
    ledger = Ledger(database_url)
    ledger.append(told(0, AccountCreated(account="org")), told(0, AccountCreated(account="org/vision")))
    ledger.append(told(START_S, registered("h1", 8)))
    ledger.append(*run_of(START_S + 3600, START_S + 7200, "w1"))
    yield ledger
    ledger.engine.dispose()


@pytest.fixture
def watcher(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watcher]:
    with dagster_in(tmp_path, monkeypatch) as instance:
        yield Watcher(ledger.url, instance, NOW_S)


def test_days_are_rolled_up_once_and_again_when_a_late_fact_touches_them(
    watcher: Watcher, ledger: Ledger
) -> None:
    (whole,) = watcher.tick()
    assert asked(whole) == ("alpha|2026-11-27", "alpha|2026-12-01")
    assert watcher.instance.get_dynamic_partitions(CLUSTERS) == [CLUSTER]
    assert watcher.run(whole).success
    assert watcher.tick() == []

    ledger.append(*run_of(START_S + DAY_S, START_S + DAY_S + 60, "late"))
    ledger.append(*run_of(START_S + 3 * DAY_S, START_S + 4 * DAY_S + 60, "later"))
    watcher.now_s += 60
    one, two = watcher.tick()
    assert asked(one) == ("alpha|2026-11-28", "alpha|2026-11-28")
    assert asked(two) == ("alpha|2026-11-30", "alpha|2026-12-01")
    assert [watcher.run(each).success for each in (one, two)] == [True, True]
    assert ledger.value("SELECT sum(gpu_ms) FROM warehouse.usage_bucket") == 8000 * (3600 + 60 + DAY_S + 60)

    watcher.now_s += DAY_S
    (next_day,) = watcher.tick()
    assert asked(next_day) == ("alpha|2026-12-02", "alpha|2026-12-02")


def test_nothing_more_is_asked_for_while_a_run_is_at_work(watcher: Watcher, ledger: Ledger) -> None:
    (request,) = watcher.tick()
    watcher.instance.create_run_for_job(
        defs.resolve_job_def(ROLL_UP), tags=dict(request.tags), status=dg.DagsterRunStatus.STARTED
    )
    ledger.append(*run_of(START_S + 2 * DAY_S, START_S + 2 * DAY_S + 60, "late"))
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


def test_a_grant_to_a_period_that_is_over_restates_budgets_alone(watcher: Watcher, ledger: Ledger) -> None:
    (request,) = watcher.tick()
    assert watcher.run(request).success
    ledger.append(told(START_S, granted("org/vision", "2026-11", 5000)))
    (budgets,) = watcher.tick()
    assert asked(budgets) == ("alpha|2026-11-01", "alpha|2026-11-01")
    result = watcher.run(budgets)
    assert result.success
    assert [event.asset_key.path for event in result.get_asset_materialization_events()] == [
        ["budget_vs_actual"]
    ]
    assert (
        ledger.value(
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
