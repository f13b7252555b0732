import pytest
from tests.integration.pipelines.biting import fill, finding
from tests.integration.pipelines.rows import Database

from gpuledger_pipelines.defs.waste.checks import WASTE_DAY

PARTS = "squatted is a part of idle, idle and low are parts of sampled, and used is at most sampled"
FAULTS = {
    "no amount is negative": ("SET low_gpu_ms = -1",),
    PARTS: (
        "SET squatted_gpu_ms = idle_gpu_ms + 1",
        "SET low_gpu_ms = sampled_gpu_ms - idle_gpu_ms + 1",
        "SET used_gpu_ms = sampled_gpu_ms + 1",
    ),
    "who squats does it with a run": ("SET squatting_run_count = 1", "SET squatted_gpu_ms = 1"),
    "allocated is what runs of the ledger held, by person": (
        "SET allocated_gpu_ms = allocated_gpu_ms + 1",
        "SET user_token = 'somebody else'",
    ),
    "allocated and sampled of a day are those of its usage": ("SET sampled_gpu_ms = sampled_gpu_ms + 1",),
}


@pytest.mark.parametrize(
    ("expected", "fault"), [(e, fault) for e, faults in FAULTS.items() for fault in faults]
)
def test_a_fault_is_found(database: Database, expected: str, fault: str) -> None:
    fill(database)
    assert expected in finding(database, WASTE_DAY, f"UPDATE warehouse.waste_day {fault}")


def test_a_lost_row_is_found(database: Database) -> None:
    fill(database)
    assert finding(database, WASTE_DAY, "DELETE FROM warehouse.waste_day") == [
        "allocated is what runs of the ledger held, by person",
        "allocated and sampled of a day are those of its usage",
    ]
