from collections.abc import Iterable

import pytest
from tests.integration.pipelines.biting import SPAN, fill, finding, verdict
from tests.integration.pipelines.rows import Database
from tests.integration.pipelines.running import restate

from gpuledger_pipelines.defs.budget.checks import BUDGET_VS_ACTUAL
from gpuledger_pipelines.expectations import budget

FAULTS = {
    "budget less delivered is the sum of its causes": "SET variance_demand_gpu_ms = variance_demand_gpu_ms + 1",
    "either every cause is known or none": "SET variance_credit_gpu_ms = NULL",
    "available is what the pots say": "SET available_gpu_ms = available_gpu_ms + 1",
    "no amount is negative": "SET demand_gpu_ms = -1",
}
SHUT = "INSERT INTO ledger.periods (book, period, state, version) VALUES ('c', '{0}', '{1}', 1)"
BELOW_ZERO = "what is below zero corrects a period that was shut before"


@pytest.mark.parametrize("expected", FAULTS)
def test_a_fault_is_found(database: Database, expected: str) -> None:
    fill(database)
    assert expected in finding(
        database, BUDGET_VS_ACTUAL, f"UPDATE warehouse.budget_vs_actual {FAULTS[expected]}"
    )


AMOUNTS = (*budget.POTS, *budget.ACTUAL)


def below_zero(database: Database) -> dict[str, set[str]]:
    """Put an amount below zero into one column after the other; return what each time is said of signs."""
    found = {}
    for column in AMOUNTS:
        database.execute(f"UPDATE warehouse.budget_vs_actual SET {column} = -1 WHERE account = 'c/a'")
        told = {finding.expectation for finding in verdict(database, BUDGET_VS_ACTUAL).findings}
        found[column] = told & {BELOW_ZERO, "no amount is negative"}
        restate(database.url, SPAN)
    return found


def expected(nowhere: Iterable[str], uncorrected: Iterable[str]) -> dict[str, set[str]]:
    """Physics is below zero in no case."""
    said: dict[str, set[str]] = {name: {"no amount is negative"} for name in AMOUNTS}
    return said | {name: set() for name in nowhere} | {name: {BELOW_ZERO} for name in uncorrected}


def test_before_any_close_only_what_has_a_sign_is_below_zero(database: Database) -> None:
    """A close of a later period corrects nothing in this one."""
    fill(database)
    database.execute(SHUT.format("2024-04", "closed"))
    assert below_zero(database) == expected(budget.ANY_SIGN, (*budget.CORRECTED, "expired_gpu_ms"))


def test_an_earlier_period_that_was_shut_is_corrected_below_zero(database: Database) -> None:
    """It was reopened since: what was booked here meanwhile stays here."""
    fill(database)
    database.execute(SHUT.format("2024-02", "open"))
    assert below_zero(database) == expected((*budget.ANY_SIGN, *budget.CORRECTED, "expired_gpu_ms"), ())


def test_its_own_close_expires_an_overrun_and_corrects_nothing_else(database: Database) -> None:
    fill(database)
    database.execute(SHUT.format("2024-03", "closed"))
    assert below_zero(database) == expected((*budget.ANY_SIGN, "expired_gpu_ms"), budget.CORRECTED)


def test_a_ledger_that_booked_other_than_its_segments_is_found(database: Database) -> None:
    fill(database)
    found = finding(
        database,
        BUDGET_VS_ACTUAL,
        "UPDATE ledger.balances SET amount = amount + 1 WHERE commodity = 'gpu_ms' AND pot = 'spent'",
    )
    assert found == ["the ledger has booked what its closed segments held"]
