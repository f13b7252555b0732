"""The pyramid's figures: value, both sides, reason; and the window a page opens with."""

import datetime as dt

from tests.unit.dashboards.answers import layers, layers_row, status, unknown_row

from gpuledger_dashboards import views


def test_layers_stand_from_the_base_up_each_with_its_denominator() -> None:
    found = views.pyramid(layers_row())
    assert [(layer.title, layer.text) for layer in found] == [
        ("Availability", "90.0 %"),
        ("Occupancy", "88.9 %"),
        ("Impact", "80.0 %"),
        ("Utilisation", "50.0 %"),
    ]
    assert found[0].sentence == "90.0 of 100.0 installed GPU-h were healthy"
    assert found[2].sentence == "60.0 of 75.0 owed GPU-h were delivered"
    assert found[2].answer.endswith("Hour by hour 70.0 %, raw 106.1 %.")
    assert "GPU_UTIL" in found[3].detail
    assert "coverage 50.0 % of 80.0 held GPU-h" in found[3].detail


def test_what_is_missing_is_unknown_never_zero_and_says_why() -> None:
    found = views.pyramid(unknown_row())
    assert {layer.text for layer in found} == {"unknown"}
    assert {layer.value for layer in found} == {None}
    assert all(layer.answer.startswith("Unknown.") for layer in found)
    assert all(layer.why is not None for layer in found)


def test_layers_with_one_reason_say_it_once() -> None:
    groups = views.unknown(views.pyramid(unknown_row()))
    assert [titles for titles, _ in groups] == ["Availability, Occupancy, Impact", "Utilisation"]
    assert groups[0][1].command == "gpuledger budget apply budget.yaml && gpuledger rollup"
    assert views.unknown(views.pyramid(layers_row())) == []


def test_a_day_without_a_value_is_a_gap_in_the_line() -> None:
    values = views.trend(layers(layers_row("2026-03-01"), unknown_row("2026-03-02")))
    assert [(v.day, v.layer, v.value) for v in values if v.layer == "Impact"] == [
        ("2026-03-01", "Impact", 0.8),
        ("2026-03-02", "Impact", None),
    ]
    table = views.trend_table(layers(layers_row("2026-03-01")))
    assert table == [
        {
            "Day": "2026-03-01",
            "Availability": "90.0 %",
            "Occupancy": "88.9 %",
            "Impact": "80.0 %",
            "Utilisation": "50.0 %",
        }
    ]


def test_a_download_keeps_ratios_and_sums() -> None:
    (row,) = views.trend_csv(layers(layers_row("2026-03-01")))
    assert row["day"] == "2026-03-01"
    assert str(row["impact_raw"]) == "1.0610"
    assert row["owed_gpu_ms"] == 75 * 3_600_000


def test_a_page_opens_with_the_newest_thirty_days() -> None:
    assert views.known_days(status()) == (dt.date(2026, 1, 10), dt.date(2026, 3, 10))
    assert views.opening_days(status()) == (dt.date(2026, 2, 9), dt.date(2026, 3, 10))
    assert views.opening_days(status(rolled_up=False)) is None


def test_coverage_and_summary() -> None:
    assert views.coverage_of(layers_row()) == "50.0 % of held GPU-time sampled"
    assert views.summary(views.pyramid(unknown_row())).startswith("Availability unknown; Occupancy unknown")


def test_a_page_opens_with_a_cluster_that_has_something_to_show() -> None:
    assert views.opening_cluster([status("fritz", rolled_up=False), status("alex")]) == 1
    assert views.opening_cluster([status("fritz", rolled_up=False)]) == 0
