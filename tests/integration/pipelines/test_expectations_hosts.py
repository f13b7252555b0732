import pytest
from tests.integration.pipelines.biting import fill, finding
from tests.integration.pipelines.rows import Database

from gpuledger_pipelines.defs.hosts.checks import HOST_HEALTH_DAY

MOVED = "healthy_gpu_ms = healthy_gpu_ms - 1, unhealthy_gpu_ms = unhealthy_gpu_ms + 1"
FAULTS = {
    "no amount is negative": "SET failure_count = -1",
    "the conditions sum to what was installed": "SET reserved_gpu_ms = 1",
    "installed is what the inventory says, by host": "SET host = 'another' WHERE host = 'h1'",
    "together the hosts are the cluster, installed and unhealthy": f"SET {MOVED} WHERE host = 'h1'",
}


@pytest.mark.parametrize("expected", FAULTS)
def test_a_fault_is_found(database: Database, expected: str) -> None:
    fill(database)
    assert finding(database, HOST_HEALTH_DAY, f"UPDATE warehouse.host_health_day {FAULTS[expected]}") == [
        expected
    ]


def test_a_lost_host_is_found(database: Database) -> None:
    fill(database)
    assert finding(database, HOST_HEALTH_DAY, "DELETE FROM warehouse.host_health_day WHERE host = 'h1'") == [
        "installed is what the inventory says, by host",
        "together the hosts are the cluster, installed and unhealthy",
    ]


def test_an_unknown_state_is_found(database: Database) -> None:
    fill(database)
    (found,) = finding(database, HOST_HEALTH_DAY, "UPDATE warehouse.host_health_day SET state = 'odd'")
    assert "state" in found
