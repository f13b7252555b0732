"""The columns that the suites expect are those of the tables; each general rule bites in test_expectations_*."""

import pytest

from gpuledger.kernel.calendar import Calendar
from gpuledger.warehouse import tables
from gpuledger_pipelines.expectations import budget, hosts, layers, owed, usage, waits, waste
from gpuledger_pipelines.expectations.shape import day_rows
from gpuledger_pipelines.partitions import Span, days_touched

COLUMNS = {
    "usage_bucket": (*usage.BUCKET_KEY, *usage.AMOUNTS),
    "usage_hour": (*usage.HOUR_KEY, *usage.AMOUNTS),
    "owed_hour": (*owed.KEY, *owed.AMOUNTS),
    "gpu_bucket": (*layers.BUCKET_KEY, *layers.PARTITION, "reason"),
    "gpu_hour": (*layers.HOUR_KEY, *layers.PARTITION, "reason"),
    "layer_metrics_hour": (*layers.HOUR_KEY, *layers.AMOUNTS, "reason"),
    "layer_metrics_day": (*layers.DAY_KEY, *layers.AMOUNTS, "reason"),
    "budget_vs_actual": (*budget.KEY, *budget.POTS, *budget.ACTUAL, *budget.CAUSES),
    "queue_wait_day": waits.COLUMNS,
    "host_health_day": (*hosts.KEY, "state", *hosts.AMOUNTS, *hosts.COUNTS),
    "waste_day": (*waste.KEY, *waste.AMOUNTS, *waste.COUNTS),
}


@pytest.mark.parametrize("table", COLUMNS)
def test_a_suite_expects_the_columns_of_its_table(table: str) -> None:
    expected = COLUMNS[table]
    assert len(set(expected)) == len(expected)
    assert set(expected) == {column.name for column in getattr(tables, table).columns}


def test_days_are_rows_with_their_first_instant_and_their_end() -> None:
    days = days_touched(Calendar("Asia/Kathmandu"), Span("c", 1_704_067_200, 1_704_067_201, 0))
    assert day_rows(days) == "(DATE '2024-01-01', to_timestamp(1704046500), to_timestamp(1704132900))"
