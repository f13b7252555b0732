"""The pyramid page: figures, filters, and each reason for having none."""

from tests.unit.dashboards.answers import unknown_row
from tests.unit.dashboards.pages import PYRAMID, FakeClient, run_page, text_of


def test_the_pyramid_shows_values_denominators_and_its_footnote(client: FakeClient) -> None:
    text = text_of(run_page(PYRAMID))
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
    run_page(PYRAMID, cluster="beta", from_="2026-03-01", to="2026-03-02")
    assert client.asked[0] == ("cluster", "beta", "2026-03-01", "2026-03-03")


def test_another_cluster_brings_its_own_days(client: FakeClient) -> None:
    app = run_page(PYRAMID, from_="2026-03-01", to="2026-03-02")
    app.selectbox(key="cluster").set_value("beta").run()
    assert not app.exception
    assert client.asked[-1] == ("day", "beta", "2026-02-09", "2026-03-11")


def test_unknown_layers_say_why_and_what_mends_it(client: FakeClient) -> None:
    client.rows = (unknown_row("2026-03-01"),)
    text = text_of(run_page(PYRAMID))
    assert "Availability, Occupancy, Impact: unknown" in text
    assert "gpuledger budget apply" in text
    assert "No layer has a value on any of these days" in text


def test_a_window_without_data_names_the_days_there_are(client: FakeClient) -> None:
    client.rows = ()
    assert "there is data from 2026-01-10 to 2026-03-10" in text_of(run_page(PYRAMID))


def test_days_the_wrong_way_round_are_said_so(client: FakeClient) -> None:
    assert "first day is after" in text_of(run_page(PYRAMID, from_="2026-03-02", to="2026-03-01"))
    assert client.asked == []
