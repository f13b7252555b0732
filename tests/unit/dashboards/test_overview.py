"""The overview: what changed in a week, what needs somebody, and how each state of it looks."""

import datetime as dt
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from streamlit.testing.v1 import AppTest
from tests.unit.dashboards.answers import HOUR, budget_row, layers_row, status, unknown_row
from tests.unit.dashboards.pages import FakeClient, run_page, text_of

from gpuledger.api.examples import EXAMPLES
from gpuledger.client import answers
from gpuledger.client.records import HostRow, Incident
from gpuledger_dashboards import charts, overview, run, views

FAILURE = msgspec.convert(EXAMPLES["listIncidents"]["incidents"][0], Incident)
BEFORE = layers_row(
    impact=answers.Impact(window=Decimal("0.7800"), hourly=None, raw=None),
    window_met_gpu_ms=58 * HOUR, owed_gpu_ms=74 * HOUR,
)  # fmt: skip
TARGETS = {
    "availability": Decimal("0.9800"),
    "occupancy": None,
    "impact": Decimal("0.7500"),
    "utilisation": None,
}


def host(name: str, state: str, usable: int = 8, reason: str | None = None) -> HostRow:
    told = msgspec.convert(EXAMPLES["listHosts"]["hosts"][0], HostRow)
    return msgspec.structs.replace(told, host=name, state=state, gpus=8, usable_gpus=usable, reason=reason)


def opened(**query: str) -> AppTest:
    """The overview is the router's first page; links lead to the others."""
    return run_page(Path(run.APP), **query)


def links(app: AppTest) -> list[str]:
    """The sentence above each link."""
    marked = [text.value for text in app.markdown if text.value.startswith(":material/error:")]
    assert len(marked) == len(app.get("page_link"))
    return [text.removeprefix(":material/error: ").replace("\\", "") for text in marked]


def test_a_week_at_a_glance(client: FakeClient) -> None:
    client.earlier, client.targets = BEFORE, TARGETS
    text = text_of(opened())
    assert "Availability 90.0 % (no change)" in text
    assert "Impact rose by 2.0 points to 80.0 %: 60.0 of 75.0 owed GPU-h were delivered" in text
    assert "in the week before 58.0 of 74.0." in text
    assert "Utilisation stayed at 50.0 %" in text
    assert "Target 98.0 %, 8.0 points short." in text
    assert "Target 75.0 %, met." in text
    assert "No target is set." in text
    assert "Window 2026-03-04 to 2026-03-10" in text
    assert "gpuledger layers --cluster alpha --from 2026-03-04 --to 2026-03-11 --json" in text


def test_it_asks_for_the_week_the_one_before_and_four_weeks_by_day(client: FakeClient) -> None:
    opened()
    assert client.asked[:3] == [
        ("cluster", "alpha", "2026-03-04", "2026-03-11"),
        ("cluster", "alpha", "2026-02-25", "2026-03-04"),
        ("day", "alpha", "2026-02-11", "2026-03-11"),
    ]
    assert len(client.asked) <= 10


def test_the_filters_are_read_from_the_address(client: FakeClient) -> None:
    opened(cluster="beta", to="2026-03-02")
    assert client.asked[0] == ("cluster", "beta", "2026-02-24", "2026-03-03")


def test_what_needs_somebody_leads_to_its_page(client: FakeClient) -> None:
    client.targets = TARGETS
    client.statuses = (status(periods=("2026-02", "2026-03")),)
    client.fleet = (host("h1", "healthy"), host("h2", "unhealthy", 0, "xid-79"))
    client.failures = (FAILURE,)
    client.rights = ("read-work", "read-books")
    client.all_books = answers.Books(books=(), dead_letters=3, as_of="2026-12-01T12:00:00Z")
    app = opened()
    found = links(app)
    assert found[0] == "Availability is 90.0 %: target 98.0 %, 8.0 points short."
    assert found[1] == "alpha/a is over its budget of 2026-03: 120.0 GPU-h charged, 20.0 more than it had."
    assert found[2] == "h2 (xid-79) takes no work or only part of it: 8 GPUs are missing."
    assert found[3].startswith("One failure of hardware in this week ended 1 run; 4.0 GPU-h were given back")
    assert found[4] == "3 records could not be read and wait for a person."
    assert "5 things need somebody." in text_of(app)
    assert [element.proto.label for element in app.get("page_link")] == [
        "Open Pyramid", "Open Budget versus actual", "Open Hosts", "Open Hosts", "Open Audit",
    ]  # fmt: skip
    assert {element.proto.query_string for element in app.get("page_link")} == {"cluster=alpha"}


def test_what_a_role_may_not_see_is_not_fetched(client: FakeClient) -> None:
    client.rights = ()
    client.failures = (FAILURE,)
    client.unknown = AssertionError("the books are not this viewer's")
    app = opened()
    assert not links(app)
    assert "Nothing needs anybody." in text_of(app)


def test_unknown_layers_say_why_and_draw_no_line(client: FakeClient) -> None:
    client.rows = (unknown_row(),)
    text = text_of(opened())
    assert "No layer is known." in text
    assert "Availability is unknown. No inventory of this cluster." in text


def test_a_first_week_has_none_before_it(client: FakeClient) -> None:
    (change, *_) = overview.changes(layers_row(), None, {})
    assert change.points is None
    assert change.sentence.endswith("Of the week before it is unknown.")


def test_a_cluster_that_is_not_rolled_up_names_the_command(client: FakeClient) -> None:
    client.statuses = (status(rolled_up=False),)
    assert "gpuledger rollup" in text_of(opened())


def test_a_week_without_data_names_the_days_there_are(client: FakeClient) -> None:
    client.rows = ()
    assert "there is data from 2026-01-10 to 2026-03-10" in text_of(opened(to="2025-01-01"))


def test_figures_of_a_part_of_the_book_say_so() -> None:
    late = msgspec.structs.replace(status(), last_recorded_at="2026-03-13T06:00:00Z")
    (alert,) = overview.of_roll_up(late, "2026-03-11T06:00:00Z")
    assert "gpuledger rollup brings them up to date" in alert.sentence
    assert not overview.of_roll_up(late, "2026-03-12T06:00:00Z")


def test_many_over_budget_are_counted() -> None:
    rows = [budget_row(f"alpha/{name}", 10, 20 + n) for n, name in enumerate("abcde")]
    found = [alert.sentence for alert in overview.of_budgets(rows, "2026-02")]
    assert found[0].startswith("alpha/e is over its budget of 2026-02: 24.0 GPU-h charged, 14.0 more")
    assert found[-1] == "2 more accounts are over their budgets of 2026-02."


def test_who_is_foreseen_to_overspend_is_named_once() -> None:
    forecast = msgspec.convert(
        EXAMPLES["getBudgetVersusActual"]["rows"][0]["forecast"], answers.BudgetForecast
    )
    expected = msgspec.structs.replace(forecast, overrun="expected")
    rows = [
        msgspec.structs.replace(budget_row(f"alpha/{name}", 100, charged), forecast=expected)
        for name, charged in (("a", 120), ("b", 50))
    ]
    assert [alert.sentence for alert in overview.of_budgets(rows, "2026-02")][1:] == [
        "alpha/b is foreseen to spend more than budgeted in 2026-02."
    ]


@pytest.mark.parametrize(("to", "day"), [("2026-03-11T00:00:00Z", 10), ("2026-03-11T05:00:00Z", 10)])
def test_the_week_ends_with_a_whole_day(to: str, day: int) -> None:
    found = msgspec.structs.replace(status(), rolled_up_to=to)
    assert overview.last_whole_day(found) == dt.date(2026, 3, day)


def test_a_line_has_its_target_beside_it() -> None:
    values = [value for value in views.trend(_days()) if value.layer == "Impact"]
    assert len(charts.course_of_layer(values, Decimal("0.9"), "#000000").to_dict()["layer"]) == 2
    assert len(charts.course_of_layer(values, None, "#000000").to_dict()["layer"]) == 1


def _days() -> answers.Layers:
    from tests.unit.dashboards.answers import layers

    return layers(layers_row("2026-03-01"), layers_row("2026-03-02"))


def test_the_download_has_both_weeks_and_the_target() -> None:
    rows = overview.csv_rows(overview.changes(layers_row(), BEFORE, TARGETS))
    assert rows[2]["layer"] == "impact"
    assert (rows[2]["value"], rows[2]["week_before"], rows[2]["target"]) == (
        Decimal("0.8000"), Decimal("0.7800"), Decimal("0.7500"),
    )  # fmt: skip
