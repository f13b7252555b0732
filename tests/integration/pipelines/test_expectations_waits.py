import pytest
from tests.integration.pipelines.biting import fill, finding
from tests.integration.pipelines.rows import Database

from gpuledger_pipelines.defs.waits.checks import QUEUE_WAIT_DAY

FAULTS = {
    "no amount is negative": "SET at_once_count = -1",
    "requests were started, wait still, or were withdrawn": (
        "SET withdrawn_count = withdrawn_count - 1 WHERE account = 'c/a'"
    ),
    "every request is listed with how long it waited, and none longer than the longest": (
        "SET longest_s = longest_s + 1"
    ),
    "quantiles rise, and what is not known of one is not known of a later one": (
        "SET p50_s = p90_s + 1 WHERE account = 'c/b'",
        "SET p90_s = NULL WHERE account = 'c/b'",
        "SET p99_s = longest_s + 1 WHERE account = 'c/b'",
    ),
    "where everybody started, quantiles are those of the waits as they are listed": (
        "SET p50_s = p50_s - 1 WHERE account = 'c/b'"
    ),
    "every wait of the ledger is counted once, with its length": (
        "SET unstarted_for_s = ARRAY[unstarted_for_s[1] - 1], longest_s = longest_s - 1 WHERE account = 'c/a'"
    ),
    "who waits was counted up to the run's present": "SET as_of_at = as_of_at - interval '1 second'",
}
CASES = [
    (expected, fault)
    for expected, faults in FAULTS.items()
    for fault in ([faults] if isinstance(faults, str) else faults)
]


@pytest.mark.parametrize(("expected", "fault"), CASES)
def test_a_fault_is_found(database: Database, expected: str, fault: str) -> None:
    fill(database)
    assert expected in finding(database, QUEUE_WAIT_DAY, f"UPDATE warehouse.queue_wait_day {fault}")


def test_a_lost_row_is_found(database: Database) -> None:
    fill(database)
    found = finding(database, QUEUE_WAIT_DAY, "DELETE FROM warehouse.queue_wait_day WHERE account = 'c/a'")
    assert found == ["every wait of the ledger is counted once, with its length"]


@pytest.mark.parametrize("column", ["class", "turn"])
def test_an_unknown_word_is_found(database: Database, column: str) -> None:
    fill(database)
    found = finding(database, QUEUE_WAIT_DAY, f"UPDATE warehouse.queue_wait_day SET {column} = 'odd'")
    assert len(found) == 1
    assert column in found[0]
