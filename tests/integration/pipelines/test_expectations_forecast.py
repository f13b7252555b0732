import pytest
from tests.integration.pipelines.biting import fill, finding
from tests.integration.pipelines.rows import Database

from gpuledger_pipelines.defs.forecast.checks import FORECAST

ALL = "forecast_gpu_ms = {0}, low_gpu_ms = {1}, high_gpu_ms = {2}, history_day_count = 14, left_day_count = 1"
FAULTS = {
    "the band holds the forecast and begins at what is delivered": "UPDATE {} SET reason = NULL, "
    + ALL.format("delivered_gpu_ms + 2", "delivered_gpu_ms", "delivered_gpu_ms + 1"),
    "there is a forecast with both ends of its band, or a reason": "UPDATE {} SET reason = NULL",
    "nothing is foretold from a short history, or of a period that is over": "UPDATE {} SET reason = NULL, "
    + ALL.format(*["delivered_gpu_ms"] * 3).replace("14", "13"),
    "nothing was known that happens after the run's present": "UPDATE {} SET as_of_at = as_of_at + interval '1 s'",
    "every budget has a line, with what was delivered of it": "DELETE FROM {} WHERE account = 'c/a'",
    "no amount is negative": "UPDATE {} SET history_day_count = -1",
}


@pytest.mark.parametrize("expected", FAULTS)
def test_a_fault_is_found(database: Database, expected: str) -> None:
    fill(database)
    assert expected in finding(database, FORECAST, FAULTS[expected].format("warehouse.forecast"))


def test_what_is_delivered_below_zero_is_foretold_from_there(database: Database) -> None:
    """A late credit of a sealed period may be more than what the open one has delivered."""
    fill(database)
    both = "WITH b AS (UPDATE warehouse.budget_vs_actual {0}) UPDATE warehouse.forecast {0}"
    assert finding(database, FORECAST, both.format("SET delivered_gpu_ms = -9 WHERE account = 'c/b'")) == []
