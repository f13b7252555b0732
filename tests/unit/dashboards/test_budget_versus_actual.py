"""The page of budget versus actual: figures, filters, and each reason for having none."""

from tests.unit.dashboards.answers import UNKNOWN, budget_row
from tests.unit.dashboards.pages import BUDGET, FakeClient, run_page, text_of


def test_budget_versus_actual_answers_at_a_glance(client: FakeClient) -> None:
    text = text_of(run_page(BUDGET))
    assert "130.0 of 150.0 budgeted GPU-h were charged (86.7 %); 1 of 2 accounts is over budget: a." in text
    assert "2026-02-01 00:00 UTC to 2026-03-01 00:00 UTC" in text
    assert client.asked == [("alpha", "2026-02")]


def test_the_period_is_read_from_the_address(client: FakeClient) -> None:
    run_page(BUDGET, period="2026-01")
    assert client.asked == [("alpha", "2026-01")]


def test_budgets_without_inventory_say_so(client: FakeClient) -> None:
    client.budgets = (budget_row("alpha/a", 0, 5, **UNKNOWN),)
    text = text_of(run_page(BUDGET))
    assert "no account has a budget" in text
    assert "gpuledger budget apply" in text


def test_a_budget_that_was_met_exactly_has_no_causes(client: FakeClient) -> None:
    client.budgets = (budget_row("alpha/a", 10, 10),)
    assert "was delivered its budget exactly" in text_of(run_page(BUDGET))
