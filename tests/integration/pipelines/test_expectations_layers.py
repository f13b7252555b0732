import pytest
from tests.integration.pipelines.biting import fill, finding, noon
from tests.integration.pipelines.rows import Database

from gpuledger_pipelines.defs.layers.checks import CAPACITY_BUCKET, LAYER_METRICS_DAY, LAYER_METRICS_HOUR
from gpuledger_pipelines.gate import Gate

PARTITION_FAULTS = {
    "the states sum to what was installed, and the residual is 0": "SET free_gpu_ms = free_gpu_ms - 1",
    "no more is occupied than is installed": "SET allocated_gpu_ms = installed_gpu_ms + 1",
    "no amount is negative": "SET free_gpu_ms = -1",
    "what needs an inventory is missing exactly where a reason says so": "SET owed_gpu_ms = NULL",
    "what was met hour by hour is at most what was owed and what was delivered": (
        "SET hourly_met_gpu_ms = owed_gpu_ms + 1"
    ),
}
GATES = {"layer_metrics_hour": LAYER_METRICS_HOUR, "layer_metrics_day": LAYER_METRICS_DAY}


@pytest.mark.parametrize("table", GATES)
@pytest.mark.parametrize("expected", PARTITION_FAULTS)
def test_a_fault_in_the_partition_is_found(database: Database, table: str, expected: str) -> None:
    fill(database)
    gate: Gate = GATES[table]
    assert expected in finding(database, gate, f"UPDATE warehouse.{table} {PARTITION_FAULTS[expected]}")


def test_an_hour_that_differs_from_its_usage_is_found(database: Database) -> None:
    fill(database)
    found = finding(
        database,
        LAYER_METRICS_HOUR,
        "UPDATE warehouse.layer_metrics_hour SET allocated_gpu_ms = allocated_gpu_ms - 1,"
        f" free_gpu_ms = free_gpu_ms + 1 WHERE hour_at = {noon()}",
    )
    assert found == ["allocated and unallocated are the usage of the hour"]


def test_a_day_that_differs_from_its_buckets_is_found(database: Database) -> None:
    fill(database)
    found = finding(
        database,
        LAYER_METRICS_DAY,
        "UPDATE warehouse.layer_metrics_day SET allocated_gpu_ms = allocated_gpu_ms - 1,"
        " free_gpu_ms = free_gpu_ms + 1",
    )
    assert found == ["days sum to the buckets between their edges"]


def test_more_unhealthy_than_installed_is_found(database: Database) -> None:
    fill(database)
    found = finding(
        database,
        CAPACITY_BUCKET,
        "UPDATE warehouse.capacity_bucket SET unhealthy_gpu_ms = installed_gpu_ms + 1",
    )
    assert found == ["unhealthy and maintenance are parts of installed"]
