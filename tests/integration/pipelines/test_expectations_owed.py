import pytest
from tests.integration.pipelines.biting import fill, finding, noon
from tests.integration.pipelines.rows import Database

from gpuledger_pipelines.defs.owed.checks import OWED_HOUR

FAULTS = {
    "owed is the smaller of entitlement and demand, and unknown where entitlement is": (
        "SET owed_gpu_ms = owed_gpu_ms + 1 WHERE account = 'c/a'"
    ),
    "what runs hold is demand too": "SET demand_gpu_ms = delivered_gpu_ms - 1 WHERE delivered_gpu_ms > 0",
    "entitlements are at most the healthy capacity": (
        f"SET entitlement_gpu_ms = entitlement_gpu_ms + 1 WHERE account = 'c/b' AND hour_at = {noon()}"
    ),
    "delivered is the allocated usage": "SET delivered_gpu_ms = 1 WHERE account = 'c/b'",
    "no amount is negative": "SET demand_gpu_ms = -1",
}


@pytest.mark.parametrize("expected", FAULTS)
def test_a_fault_is_found(database: Database, expected: str) -> None:
    fill(database)
    assert expected in finding(database, OWED_HOUR, f"UPDATE warehouse.owed_hour {FAULTS[expected]}")
