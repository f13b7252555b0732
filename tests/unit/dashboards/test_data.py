"""What the pages ask is kept for a moment, errors are not."""

import datetime as dt

import pytest
from tests.unit.dashboards.pages import FakeClient

from gpuledger.kernel.errors import Unavailable
from gpuledger_dashboards import data


def test_the_same_question_is_asked_once_until_it_is_forgotten(client: FakeClient) -> None:
    first, last = dt.date(2026, 3, 1), dt.date(2026, 3, 2)
    for _ in range(3):
        data.layers("day", "alpha", first, last)
    assert client.asked == [("day", "alpha", "2026-03-01", "2026-03-03")]
    data.forget()
    data.layers("day", "alpha", first, last)
    assert len(client.asked) == 2


def test_an_error_is_not_kept(client: FakeClient) -> None:
    client.error = Unavailable("away")
    with pytest.raises(Unavailable):
        data.clusters()
    client.error = None
    assert data.clusters().clusters


def test_budgets_are_kept_by_cluster_and_period(client: FakeClient) -> None:
    data.budget_vs_actual("alpha", "2026-01")
    data.budget_vs_actual("alpha", "2026-02")
    assert client.asked == [("alpha", "2026-01"), ("alpha", "2026-02")]


def test_the_api_is_where_the_settings_say() -> None:
    assert data.api_url().startswith("http")
