"""The pages run by Streamlit itself, over a client that answers from memory."""

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from tests.unit.dashboards.answers import (
    UNKNOWN,
    budget,
    budget_row,
    layers,
    layers_row,
    status,
    unknown_row,
)

from gpuledger.client import answers
from gpuledger.kernel.errors import Unavailable
from gpuledger_dashboards import data, run

PAGES = Path(run.APP).parent / "app_pages"
PYRAMID, BUDGET = PAGES / "pyramid.py", PAGES / "budget_versus_actual.py"


@dataclass
class FakeClient:
    """Answers as told, and remembers what it was asked."""

    statuses: tuple[answers.ClusterStatus, ...] = (status(), status("beta"))
    rows: tuple[answers.LayersRow, ...] = (layers_row("2026-03-01"), layers_row("2026-03-02"))
    budgets: tuple[answers.BudgetRow, ...] = (budget_row("alpha/a", 100, 120), budget_row("alpha/b", 50, 10))
    error: Exception | None = None
    asked: list[tuple[object, ...]] = field(default_factory=list)

    def clusters(self) -> answers.Clusters:
        if self.error:
            raise self.error
        return answers.Clusters(clusters=self.statuses, as_of="2026-03-11T06:00:00Z")

    def layers(self, by: str, *, cluster: str, from_: dt.date, to: dt.date) -> answers.Layers:
        self.asked.append((by, cluster, str(from_), str(to)))
        return layers(*(self.rows if by == "day" else self.rows[:1]), by=by)

    def budget_vs_actual(self, *, cluster: str, period: str) -> answers.BudgetVersusActual:
        self.asked.append((cluster, period))
        return budget(*self.budgets)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeClient]:
    fake = FakeClient()
    st.cache_data.clear()
    st.cache_resource.clear()
    monkeypatch.setattr(data, "open_client", lambda _: fake)
    yield fake
    st.cache_data.clear()
    st.cache_resource.clear()


def _run(page: Path, **query: str) -> AppTest:
    app = AppTest.from_file(page, default_timeout=60)
    for name, value in query.items():
        app.query_params[name.rstrip("_")] = value
    app.run()
    assert not app.exception
    return app


def _text(app: AppTest) -> str:
    kinds = (app.title, app.subheader, app.markdown, app.caption, app.info, app.code)
    return "\n".join(element.value for kind in kinds for element in kind).replace("\\", "")


def test_the_pyramid_shows_values_denominators_and_its_footnote(client: FakeClient) -> None:
    text = _text(_run(PYRAMID))
    for words in (
        "90.0 of 100.0 installed GPU-h",
        "60.0 of 75.0 owed GPU-h",
        "Window 2026-02-09 to 2026-03-10",
        "as of 2026-03-11 06:00 UTC",
        "coverage 50.0 % of held GPU-time",
        "GPU_UTIL",
        "curl",
    ):
        assert words in text
    assert client.asked == [
        ("cluster", "alpha", "2026-02-09", "2026-03-11"),
        ("day", "alpha", "2026-02-09", "2026-03-11"),
    ]


def test_the_filters_are_read_from_the_address(client: FakeClient) -> None:
    _run(PYRAMID, cluster="beta", from_="2026-03-01", to="2026-03-02")
    assert client.asked[0] == ("cluster", "beta", "2026-03-01", "2026-03-03")


def test_another_cluster_brings_its_own_days(client: FakeClient) -> None:
    app = _run(PYRAMID, from_="2026-03-01", to="2026-03-02")
    app.selectbox(key="cluster").set_value("beta").run()
    assert not app.exception
    assert client.asked[-1] == ("day", "beta", "2026-02-09", "2026-03-11")


def test_unknown_layers_say_why_and_what_mends_it(client: FakeClient) -> None:
    client.rows = (unknown_row("2026-03-01"),)
    text = _text(_run(PYRAMID))
    assert "Availability, Occupancy, Impact: unknown" in text
    assert "gpuledger budget apply" in text
    assert "No layer has a value on any of these days" in text


@pytest.mark.parametrize("page", [PYRAMID, BUDGET], ids=lambda page: page.stem)
def test_an_api_that_is_away_is_named_with_the_command(client: FakeClient, page: Path) -> None:
    client.error = Unavailable("the ledger API at http://x cannot be reached: refused")
    app = _run(page)
    assert "gpuledger serve" in _text(app)
    client.error = None
    app.button[0].click().run()
    assert not app.exception
    assert "gpuledger serve" not in _text(app)


@pytest.mark.parametrize("page", [PYRAMID, BUDGET], ids=lambda page: page.stem)
def test_an_empty_ledger_says_how_to_fill_it(client: FakeClient, page: Path) -> None:
    client.statuses = ()
    assert "gpuledger import" in _text(_run(page))


@pytest.mark.parametrize("page", [PYRAMID, BUDGET], ids=lambda page: page.stem)
def test_nothing_rolled_up_names_the_roll_up(client: FakeClient, page: Path) -> None:
    client.statuses = (status(rolled_up=False, periods=()),)
    assert "gpuledger rollup" in _text(_run(page))


def test_a_window_without_data_names_the_days_there_are(client: FakeClient) -> None:
    client.rows = ()
    assert "there is data from 2026-01-10 to 2026-03-10" in _text(_run(PYRAMID))


def test_days_the_wrong_way_round_are_said_so(client: FakeClient) -> None:
    assert "first day is after" in _text(_run(PYRAMID, from_="2026-03-02", to="2026-03-01"))
    assert client.asked == []


def test_budget_versus_actual_answers_at_a_glance(client: FakeClient) -> None:
    text = _text(_run(BUDGET))
    assert "130.0 of 150.0 budgeted GPU-h were charged (86.7 %); 1 of 2 accounts is over budget: a." in text
    assert "2026-02-01 00:00 UTC to 2026-03-01 00:00 UTC" in text
    assert client.asked == [("alpha", "2026-02")]


def test_the_period_is_read_from_the_address(client: FakeClient) -> None:
    _run(BUDGET, period="2026-01")
    assert client.asked == [("alpha", "2026-01")]


def test_budgets_without_inventory_say_so(client: FakeClient) -> None:
    client.budgets = (budget_row("alpha/a", 0, 5, **UNKNOWN),)
    text = _text(_run(BUDGET))
    assert "no account has a budget" in text
    assert "gpuledger budget apply" in text


def test_a_budget_that_was_met_exactly_has_no_causes(client: FakeClient) -> None:
    client.budgets = (budget_row("alpha/a", 10, 10),)
    assert "was delivered its budget exactly" in _text(_run(BUDGET))


def test_the_router_opens_with_the_pyramid(client: FakeClient) -> None:
    app = _run(Path(run.APP))
    assert [title.value for title in app.title] == ["Pyramid"]


def test_no_page_uses_the_word_that_means_the_order_inside_an_account() -> None:
    for path in Path(run.APP).parent.rglob("*.py"):
        assert not re.search(r"priorit", path.read_text(), re.IGNORECASE), path.name
