import pytest
from tests.integration.pipelines.biting import fill, finding, noon
from tests.integration.pipelines.rows import Database

from gpuledger_pipelines.defs.layers.checks import GPU_BUCKET, GPU_HOUR, LAYER_METRICS_DAY, LAYER_METRICS_HOUR
from gpuledger_pipelines.gate import Gate

PARTITION_FAULTS = {
    "the states sum to what was installed, and the residual is 0": "SET free_gpu_ms = free_gpu_ms - 1",
    "no more is occupied than is installed": "SET allocated_gpu_ms = installed_gpu_ms + 1",
    "no amount is negative": "SET free_gpu_ms = -1",
    "what needs an inventory is missing exactly where a reason says so": "SET lost_gpu_ms = NULL",
    "what is unhealthy and occupied is a part of what is occupied": (
        "SET unhealthy_occupied_gpu_ms = allocated_gpu_ms + unallocated_gpu_ms + 1"
    ),
}
GATES = {
    "gpu_bucket": GPU_BUCKET,
    "gpu_hour": GPU_HOUR,
    "layer_metrics_hour": LAYER_METRICS_HOUR,
    "layer_metrics_day": LAYER_METRICS_DAY,
}
ONE_FREE_LESS = "allocated_gpu_ms = allocated_gpu_ms + 1, free_gpu_ms = free_gpu_ms - 1"


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
    assert found == [
        "the states are those of the hour",
        "allocated and unallocated are the usage of the hour",
    ]


@pytest.mark.parametrize("table", ["layer_metrics_hour", "layer_metrics_day"])
def test_more_met_than_owed_is_found(database: Database, table: str) -> None:
    fill(database)
    fault = f"UPDATE warehouse.{table} SET hourly_met_gpu_ms = owed_gpu_ms + 1"
    assert finding(database, GATES[table], fault) == [
        "what was met hour by hour is at most what was owed and what was delivered"
    ]


@pytest.mark.parametrize(
    ("table", "where", "found"),
    [
        ("gpu_bucket", f"bucket_at = {noon()}", "allocated and unallocated are the usage of the bucket"),
        ("gpu_hour", f"hour_at = {noon()}", "an hour is the sum of its buckets in every state"),
    ],
)
def test_a_state_that_differs_from_what_it_is_a_sum_of_is_found(
    database: Database, table: str, where: str, found: str
) -> None:
    fill(database)
    fault = f"UPDATE warehouse.{table} SET {ONE_FREE_LESS} WHERE {where}"
    assert finding(database, GATES[table], fault) == [found]


def test_a_lost_bucket_is_found_by_the_inventory(database: Database) -> None:
    """At midnight nothing runs: only the inventory tells that there was a bucket."""
    fill(database)
    fault = f"DELETE FROM warehouse.gpu_bucket WHERE bucket_at = {noon()} - interval '12 hours'"
    assert finding(database, GPU_BUCKET, fault) == ["installed is what the inventory says, to the second"]


def test_a_bucket_of_another_length_is_found(database: Database) -> None:
    fill(database)
    fault = "UPDATE warehouse.gpu_bucket SET bucket_at = bucket_at + interval '1 second'"
    assert "a bucket begins on a quarter of an hour, and not after the run's present" in finding(
        database, GPU_BUCKET, fault
    )


def test_a_day_that_differs_from_its_buckets_is_found(database: Database) -> None:
    fill(database)
    found = finding(
        database,
        LAYER_METRICS_DAY,
        "UPDATE warehouse.layer_metrics_day SET allocated_gpu_ms = allocated_gpu_ms - 1,"
        " free_gpu_ms = free_gpu_ms + 1",
    )
    assert found == [
        "days sum to the usage between their edges",
        "a day is the sum of its buckets in every state",
    ]
