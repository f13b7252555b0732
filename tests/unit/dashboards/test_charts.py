"""Specifications of the charts: what they draw, and that colour never speaks alone."""

from typing import Any

import pytest
from tests.unit.dashboards.answers import budget_row, layers, layers_row, unknown_row

from gpuledger.client import answers
from gpuledger_dashboards import budgets, charts, views
from gpuledger_dashboards.work import ALLOCATED, WAITED, Span

NODES = budgets.tree([budget_row("alpha/a", 100, 120), budget_row("alpha/b", 50, 10)])


def _pyramid(row: answers.LayersRow) -> dict[str, Any]:
    spec: dict[str, Any] = charts.pyramid(views.pyramid(row), "#000000").to_dict()
    return spec


def _values(spec: dict[str, Any], layer: int | None = None) -> list[dict[str, Any]]:
    data = (spec if layer is None else spec["layer"][layer])["data"]
    values: list[dict[str, Any]] = data["values"] if "values" in data else spec["datasets"][data["name"]]
    return values


def test_the_base_is_the_widest_and_the_lowest() -> None:
    corners = _values(_pyramid(layers_row()), 0)
    widths = {c["layer"]: max(x["right"] for x in corners if x["layer"] == c["layer"]) for c in corners}
    assert list(widths) == ["Availability", "Occupancy", "Impact", "Utilisation"]
    assert sorted(widths.values(), reverse=True) == list(widths.values())
    depths = {c["layer"]: c["y"] for c in corners}
    assert depths["Availability"] > depths["Utilisation"]


def test_the_filled_part_is_the_value() -> None:
    spec = _pyramid(layers_row())
    whole = [c["right"] for c in _values(spec, 0) if c["layer"] == "Utilisation"]
    part = [c["right"] for c in _values(spec, 1) if c["layer"] == "Utilisation"]
    assert part == [pytest.approx(x / 2) for x in whole]


def test_unknown_is_an_empty_slab_and_a_word() -> None:
    spec = _pyramid(unknown_row())
    assert {c["right"] for c in _values(spec, 1)} == {0.0}
    assert {label["text"].split()[-1] for label in _values(spec, 2)} == {"unknown"}


def test_lines_differ_by_dash_too_and_gaps_stay_gaps() -> None:
    spec = charts.trend(views.trend(layers(layers_row("2026-03-01"), unknown_row("2026-03-02")))).to_dict()
    assert spec["encoding"]["strokeDash"]["field"] == "layer"
    assert [v["value"] for v in _values(spec)][-1] is None
    assert spec["encoding"]["x"]["scale"]["type"] == "utc"
    assert spec["encoding"]["x"]["axis"]["tickCount"] == {"interval": "day", "step": 1}


def test_bars_have_a_mark_only_where_something_is_owed() -> None:
    bars, marks = budgets.bars(NODES)
    assert len(charts.budget_bars(bars, marks, "#000000").to_dict()["layer"]) == 3
    assert len(charts.budget_bars(bars, [], "#000000").to_dict()["layer"]) == 2


def test_causes_stack_on_both_sides_of_zero() -> None:
    spec = charts.variance(budgets.causes(NODES), ["a", "b"]).to_dict()
    assert spec["encoding"]["x"]["stack"] == "zero"
    assert {v["value"] for v in _values(spec)} == {-20, 40}


@pytest.mark.parametrize("palette", [charts.COLOURS, charts.CAUSE_COLOURS, charts.PARTS, charts.SPAN_COLOURS])
def test_no_two_things_share_a_colour(palette: dict[str, str]) -> None:
    assert len(set(palette.values())) == len(palette)


def test_every_layer_and_cause_has_a_colour() -> None:
    assert (
        charts.COLOURS.keys()
        == charts.DASHES.keys()
        == {layer.title for layer in views.pyramid(layers_row())}
    )
    assert charts.CAUSE_COLOURS.keys() == set(budgets.CAUSES.values()) == budgets.CAUSES_IN_WORDS.keys()


def test_a_life_has_a_row_for_each_thing_that_was_done() -> None:
    spans = [
        Span(ALLOCATED, "2026-03-11T09:00:00Z", "2026-03-11T10:00:00Z", "ran"),
        Span(WAITED, "2026-03-11T08:00:00Z", "2026-03-11T09:00:00Z", "waited"),
    ]
    spec = charts.course(spans).to_dict()
    assert spec["encoding"]["y"]["sort"] == [WAITED, ALLOCATED]
    assert spec["encoding"]["x"]["scale"] == {"type": "utc"}
    assert len(_values(spec)) == 2
