"""The columns that the suites expect are those of the tables; each general rule bites in test_expectations_*."""

import pytest

from gpuledger.warehouse import tables
from gpuledger_pipelines.expectations import budget, hosts, layers, owed, usage, waits, waste

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
