import pytest
from tests.integration.pipelines.biting import fill, finding, noon
from tests.integration.pipelines.rows import Database

from gpuledger_pipelines.defs.usage.checks import USAGE_BUCKET, USAGE_HOUR

BUCKET_FAULTS = {
    "buckets sum to the segments of the ledger": "SET gpu_ms = gpu_ms + 1 WHERE account = 'c/a'",
    "no amount is negative": "SET gpu_ms = -gpu_ms",
    "used is at most sampled": "SET used_gpu_ms = 1",
    "a bucket begins on a quarter of an hour, and not after the run's present": (
        "SET bucket_at = bucket_at + interval '1 second'"
    ),
}
HOUR_FAULTS = {
    "an hour is the sum of its buckets": "SET gpu_ms = gpu_ms - 1 WHERE account = 'c/a'",
    "no amount is negative": "SET sampled_gpu_ms = -1",
    "used is at most sampled": "SET used_gpu_ms = 1",
}


@pytest.mark.parametrize("expected", BUCKET_FAULTS)
def test_a_fault_in_usage_bucket_is_found(database: Database, expected: str) -> None:
    fill(database)
    assert expected in finding(
        database, USAGE_BUCKET, f"UPDATE warehouse.usage_bucket {BUCKET_FAULTS[expected]}"
    )


@pytest.mark.parametrize("expected", HOUR_FAULTS)
def test_a_fault_in_usage_hour_is_found(database: Database, expected: str) -> None:
    fill(database)
    assert expected in finding(database, USAGE_HOUR, f"UPDATE warehouse.usage_hour {HOUR_FAULTS[expected]}")


def test_a_lost_hour_is_found(database: Database) -> None:
    fill(database)
    found = finding(database, USAGE_HOUR, f"DELETE FROM warehouse.usage_hour WHERE hour_at = {noon()}")
    assert found == ["an hour is the sum of its buckets"]


def test_an_unknown_class_is_found(database: Database) -> None:
    fill(database)
    found = finding(database, USAGE_HOUR, "UPDATE warehouse.usage_hour SET class = 'borrowed'")
    assert any("borrowed" in each or "value_set" in each or "in_set" in each for each in found)


def test_a_changed_table_is_found(database: Database) -> None:
    fill(database)
    found = finding(database, USAGE_HOUR, "ALTER TABLE warehouse.usage_hour ADD COLUMN note text")
    assert any("columns" in each for each in found)


def test_a_row_twice_is_found(database: Database) -> None:
    fill(database)
    database.execute("ALTER TABLE warehouse.usage_hour DROP CONSTRAINT pk_usage_hour")
    found = finding(
        database, USAGE_HOUR, "INSERT INTO warehouse.usage_hour SELECT * FROM warehouse.usage_hour LIMIT 1"
    )
    assert any("unique" in each for each in found)


def test_a_missing_amount_is_found(database: Database) -> None:
    fill(database)
    database.execute("ALTER TABLE warehouse.usage_hour ALTER COLUMN used_gpu_ms DROP NOT NULL")
    found = finding(database, USAGE_HOUR, "UPDATE warehouse.usage_hour SET used_gpu_ms = NULL")
    assert "nothing is missing that may not be" in found
