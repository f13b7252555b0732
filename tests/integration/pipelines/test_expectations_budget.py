import pytest
from tests.integration.pipelines.biting import fill, finding
from tests.integration.pipelines.rows import Database

from gpuledger_pipelines.defs.budget.checks import BUDGET_VS_ACTUAL

FAULTS = {
    "budget less delivered is the sum of its causes": "SET variance_demand_gpu_ms = variance_demand_gpu_ms + 1",
    "either every cause is known or none": "SET variance_credit_gpu_ms = NULL",
    "available is what the pots say": "SET available_gpu_ms = available_gpu_ms + 1",
    "no amount is negative": "SET held_gpu_ms = -1, available_gpu_ms = available_gpu_ms + 1",
}


@pytest.mark.parametrize("expected", FAULTS)
def test_a_fault_is_found(database: Database, expected: str) -> None:
    fill(database)
    assert expected in finding(
        database, BUDGET_VS_ACTUAL, f"UPDATE warehouse.budget_vs_actual {FAULTS[expected]}"
    )


def test_a_ledger_that_booked_other_than_its_segments_is_found(database: Database) -> None:
    fill(database)
    found = finding(
        database,
        BUDGET_VS_ACTUAL,
        "UPDATE ledger.balances SET amount = amount + 1 WHERE commodity = 'gpu_ms' AND pot = 'spent'",
    )
    assert found == ["the ledger has booked what its closed segments held"]
