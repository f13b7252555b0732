"""What Dagster is told: every table of the warehouse, in the order of the design, each behind a gate."""

import datetime as dt

import dagster as dg
import pytest

from gpuledger.kernel.clock import SystemClock
from gpuledger.warehouse import forecast_tables, tables
from gpuledger_pipelines.declaring import FRESH_FOR, LEDGER_VIEWS, RESTATES, SUITE, ledger_specs
from gpuledger_pipelines.definitions import ASSETS, defs
from gpuledger_pipelines.partitions import CLUSTERS, DAY_AND_CLUSTER
from gpuledger_pipelines.schedules import ROLL_UP

UPSTREAM = {
    "usage_bucket": set(),
    "usage_hour": {"usage_bucket"},
    "owed_hour": {"usage_hour"},
    "gpu_bucket": {"usage_bucket"},
    "gpu_hour": {"gpu_bucket"},
    "layer_metrics_hour": {"usage_hour", "gpu_hour", "owed_hour"},
    "layer_metrics_day": {"usage_bucket", "gpu_bucket", "layer_metrics_hour"},
    "budget_vs_actual": {"owed_hour", "usage_bucket"},
    "forecast": {"budget_vs_actual"},
    "queue_wait_day": set(),
    "waste_day": {"usage_bucket"},
    "host_health_day": {"gpu_bucket"},
}
TABLES = {asset.key.path[-1]: asset for asset in ASSETS}


def test_every_table_of_the_warehouse_is_an_asset() -> None:
    """All but the watermark, which the first table writes beside itself."""
    assert {*TABLES, "watermark"} == {*tables.__all__, *forecast_tables.__all__}
    assert set(RESTATES) == set(TABLES)


@pytest.mark.parametrize("table", TABLES)
def test_lineage_reads_like_the_design(table: str) -> None:
    upstream = {key for key in TABLES[table].dependency_keys if key.path[0] != "ledger_read"}
    assert {key.path[-1] for key in upstream} == UPSTREAM[table]


@pytest.mark.parametrize("table", TABLES)
def test_a_blocking_gate_stands_behind_every_table(table: str) -> None:
    (spec,) = TABLES[table].check_specs
    assert (spec.name, spec.blocking) == (SUITE, True)


@pytest.mark.parametrize("table", TABLES)
def test_a_range_of_days_is_a_single_run(table: str) -> None:
    assert TABLES[table].partitions_def == DAY_AND_CLUSTER
    assert TABLES[table].backfill_policy == dg.BackfillPolicy.single_run()


def test_the_ledgers_views_are_where_lineage_begins() -> None:
    views = {
        key.path[-1] for asset in ASSETS for key in asset.dependency_keys if key.path[0] == "ledger_read"
    }
    assert views == set(LEDGER_VIEWS) == {spec.key.path[-1] for spec in ledger_specs()}


def test_the_job_restates_every_table() -> None:
    assert {node.name for node in defs.resolve_job_def(ROLL_UP).nodes} == set(TABLES)


def test_nothing_runs_by_itself_until_somebody_turns_it_on() -> None:
    schedules = list(defs.schedules or ())
    assert {s.name for s in schedules} == {"archived", "closes", "hourly", "nightly"}  # type: ignore[union-attr]
    assert {s.default_status for s in schedules} == {dg.DefaultScheduleStatus.STOPPED}  # type: ignore[union-attr]
    assert {sensor.name: sensor.default_status for sensor in defs.sensors or ()} == {
        "watermark": dg.DefaultSensorStatus.STOPPED,
        "follow": dg.DefaultSensorStatus.STOPPED,
        "notices": dg.DefaultSensorStatus.STOPPED,
    }


@pytest.mark.parametrize("table", TABLES)
def test_a_table_that_nobody_rolls_up_is_shown_as_stale(table: str) -> None:
    (spec,) = TABLES[table].specs
    assert spec.freshness_policy == dg.FreshnessPolicy.time_window(
        fail_window=2 * FRESH_FOR, warn_window=FRESH_FOR
    )


def test_what_depends_on_a_table_of_today_that_was_restated_alone_follows_it() -> None:
    """And nothing follows what was restated of an older day: a late fact's run has every table in it."""
    today = SystemClock().now().date()  # what Dagster goes by, too
    old = today - dt.timedelta(days=10)
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions(CLUSTERS, ["c", "d"])

        def restated(table: str, day: dt.date) -> None:
            key = dg.MultiPartitionKey({"cluster": "c", "day": day.isoformat()})
            instance.report_runless_asset_event(dg.AssetMaterialization(table, partition=key))

        for table in TABLES:
            restated(table, today)
            restated(table, old)
        first = dg.evaluate_automation_conditions(defs, instance)
        restated("usage_bucket", today)
        restated("usage_bucket", old)
        second = dg.evaluate_automation_conditions(defs, instance, cursor=first.cursor)
    assert first.total_requested == 0
    asked = {table: second.get_requested_partitions(dg.AssetKey(table)) for table in TABLES}
    below = set(TABLES) - {"usage_bucket", "queue_wait_day"}
    assert asked == {table: {f"c|{today}"} if table in below else set() for table in TABLES}
