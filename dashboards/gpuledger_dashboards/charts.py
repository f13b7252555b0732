"""The charts, as specifications made of shaped values. Pure: no Streamlit.

Colours are of the Okabe-Ito palette, told apart by people who see fewer colours, and never say anything
alone: layers also have a dash, bars a place and a height.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import altair as alt

from gpuledger_dashboards.budgets import PART_BUDGET, PART_CHARGED, PART_FREE, Bar, Cause, Mark
from gpuledger_dashboards.fair_share import ENTITLED, USED
from gpuledger_dashboards.fair_share import Bar as ServedBar
from gpuledger_dashboards.lesson import Bar as TeamBar
from gpuledger_dashboards.views import DayValue, Layer
from gpuledger_dashboards.work import ALLOCATED, FREE, SUSPENDED, WAITED, Span

COLOURS = {
    "Availability": "#0072b2",
    "Occupancy": "#d55e00",
    "Impact": "#009e73",
    "Utilisation": "#cc79a7",
}
DASHES = {"Availability": [1, 0], "Occupancy": [8, 3], "Impact": [4, 3], "Utilisation": [2, 2]}
PARTS = {PART_BUDGET: "#a9b4c0", PART_CHARGED: "#0072b2", PART_FREE: "#e69f00"}
CAUSE_COLOURS = {
    "Transfers": "#56b4e9",
    "Expiry": "#f0e442",
    "Capacity": "#999999",
    "Demand": "#0072b2",
    "Scheduler": "#d55e00",
    "Credits": "#009e73",
}
SERVED_COLOURS = {ENTITLED: "#a9b4c0", USED: "#0072b2"}
SPAN_COLOURS = {WAITED: "#a9b4c0", ALLOCATED: "#0072b2", FREE: "#e69f00", SUSPENDED: "#cc79a7"}
INK = {"light": "#16202b", "dark": "#e8edf2"}
"""Theme -> colour of text inside a chart."""

# The height is the plot's: a legend must not squeeze it.
_AUTOSIZE = alt.AutoSizeParams(type="fit-x", contains="padding")
_OUTLINE = "#7d8894"

Layered = alt.LayerChart | alt.FacetChart
"""What ``alt.layer`` is annotated to return."""

_TIER = 84
_SLAB = 44
_BASE_HALF = 1.0
_STEP_HALF = 0.17
_ROW = 34
_TICKS = 10


def pyramid(layers: Sequence[Layer], ink: str) -> Layered:
    """Return the pyramid: a slab per layer, base below; its filled part is the layer's value.

    Args:
        layers: The four layers, from the base up.
        ink: Colour of text.
    """
    corners: list[dict[str, Any]] = []
    labels: list[dict[str, Any]] = []
    count = len(layers)
    for level, layer in enumerate(layers):
        top = (count - 1 - level) * _TIER + (_TIER - _SLAB)
        lower = _BASE_HALF - level * _STEP_HALF
        upper = lower - _STEP_HALF * _SLAB / _TIER
        filled = 0.0 if layer.value is None else min(float(layer.value), 1.0)
        for edge, half in ((top, upper), (top + _SLAB, lower)):
            for kind, width in (("whole", half), ("part", half * filled)):
                corners.append(
                    {"layer": layer.title, "kind": kind, "y": edge, "left": -width, "right": width}
                )
        labels.append({"layer": layer.title, "y": top - 7, "text": f"{layer.title}  {layer.text}"})
    x = alt.X("left:Q", axis=None, scale=alt.Scale(domain=[-1.02, 1.02]))
    height = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[0, count * _TIER], reverse=True))
    # Whole slabs are drawn first, so that a part lies on its whole.
    slabs = [
        alt.Chart(_data(corner for corner in corners if corner["kind"] == kind))
        .mark_area(orient="horizontal", **style)
        .encode(
            x=x,
            x2="right:Q",
            y=height,
            color=alt.Color("layer:N", legend=None, scale=_scale(COLOURS)),
            detail="layer:N",
        )
        for kind, style in (
            ("whole", {"fillOpacity": 0.14, "stroke": _OUTLINE, "strokeWidth": 1}),
            ("part", {"fillOpacity": 0.95}),
        )
    ]
    text = (
        alt.Chart(_data(labels))
        .mark_text(fontSize=18, fontWeight="bold", baseline="bottom", color=ink)
        .encode(x=alt.XDatum(0), y=height, text="text:N")
    )
    return alt.layer(*slabs, text).properties(height=count * _TIER, width="container", autosize=_AUTOSIZE)


def trend(values: Sequence[DayValue]) -> alt.Chart:
    """Return a line per layer over the days; a day without a value is a gap."""
    days = len({value.day for value in values})
    every = {"interval": "day", "step": max(1, -(-days // _TICKS))}
    chart: alt.Chart = (
        alt.Chart(_data(asdict(value) for value in values))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X(
                "day:T",
                title=None,
                # Days are names of days; a viewer's zone must not move them.
                scale=alt.Scale(type="utc"),
                axis=alt.Axis(format="%d %b", labelOverlap=True, grid=False, tickCount=every),
            ),
            y=alt.Y(
                "value:Q",
                title=None,
                axis=alt.Axis(format=".0%", tickCount=6),
                scale=alt.Scale(domain=[0, 1], clamp=True),
            ),
            color=alt.Color("layer:N", scale=_scale(COLOURS), legend=_legend("Layer", line=True)),
            strokeDash=alt.StrokeDash(
                "layer:N",
                scale=alt.Scale(domain=list(DASHES), range=list(DASHES.values())),
                legend=_legend("Layer", line=True),
            ),
            tooltip=[
                alt.Tooltip("day:N", title="Day"),
                alt.Tooltip("layer:N", title="Layer"),
                alt.Tooltip("text:N", title="Value"),
                alt.Tooltip("sentence:N", title="Of"),
            ],
        )
        .properties(height=300, width="container", autosize=_AUTOSIZE)
    )
    return chart


def budget_bars(bars: Sequence[Bar], marks: Sequence[Mark], ink: str) -> Layered:
    """Return a bar per account: the budget wide and pale, charged and free use on it, a mark where owed."""
    accounts = list(dict.fromkeys(bar.account for bar in bars))
    y = _accounts(accounts)
    colour = alt.Color("part:N", scale=_scale(PARTS), legend=_legend("Part"))
    tooltip = [alt.Tooltip("account:N", title="Account"), alt.Tooltip("text:N", title="GPU-h")]

    def layer(parts: Iterable[str], thickness: int) -> alt.Chart:
        chosen = set(parts)
        drawn: alt.Chart = (
            alt.Chart(_data(asdict(bar) for bar in bars if bar.part in chosen))
            .mark_bar(height=thickness)
            .encode(
                x=alt.X("start:Q", title="GPU-h", axis=_hours_axis()),
                x2="end:Q",
                y=y,
                color=colour,
                tooltip=tooltip,
            )
        )
        return drawn

    charts = [layer([PART_BUDGET], 24), layer([PART_CHARGED, PART_FREE], 11)]
    if marks:
        charts.append(
            alt.Chart(_data(asdict(mark) for mark in marks))
            .mark_tick(thickness=3, height=24, color=ink)
            .encode(x=alt.X("at:Q"), y=y, tooltip=tooltip)
        )
    return alt.layer(*charts).properties(
        height=max(len(accounts), 3) * _ROW, width="container", autosize=_AUTOSIZE
    )


def variance(causes: Sequence[Cause], accounts: Sequence[str]) -> alt.Chart:
    """Return budget less delivered of each account, stacked by cause; below zero is more than budgeted."""
    chart: alt.Chart = (
        alt.Chart(_data(asdict(cause) for cause in causes))
        .mark_bar(height=18)
        .encode(
            x=alt.X("value:Q", title="Budget - delivered, GPU-h", axis=_hours_axis(), stack="zero"),
            y=_accounts(accounts),
            color=alt.Color("cause:N", scale=_scale(CAUSE_COLOURS), legend=_legend("Cause")),
            order=alt.Order("order:Q"),
            tooltip=[alt.Tooltip("account:N", title="Account"), alt.Tooltip("text:N", title="Cause")],
        )
        .properties(height=max(len(accounts), 3) * _ROW, width="container", autosize=_AUTOSIZE)
    )
    return chart


def served(bars: Sequence[ServedBar], accounts: Sequence[str]) -> Layered:
    """Return two bars per account: entitled wide and pale, used narrow on it."""
    y = _accounts(accounts)
    layers = [
        alt.Chart(_data(asdict(bar) for bar in bars if bar.part == part))
        .mark_bar(height=thickness)
        .encode(
            x=alt.X("gpu_hours:Q", title="GPU-h", axis=_hours_axis(), stack=None),
            y=y,
            color=alt.Color("part:N", scale=_scale(SERVED_COLOURS), legend=_legend("Part")),
            tooltip=[alt.Tooltip("account:N", title="Account"), alt.Tooltip("text:N", title="GPU-h")],
        )
        for part, thickness in ((ENTITLED, 24), (USED, 11))
    ]
    return alt.layer(*layers).properties(
        height=max(len(accounts), 3) * _ROW, width="container", autosize=_AUTOSIZE
    )


def course(spans: Sequence[Span]) -> alt.Chart:
    """Return a workload's life as bars on a line of time, a row for each thing that it did."""
    kinds = [kind for kind in SPAN_COLOURS if any(span.what == kind for span in spans)]
    chart: alt.Chart = (
        alt.Chart(_data(asdict(span) for span in spans))
        .mark_bar(height=16)
        .encode(
            x=alt.X(
                "start:T",
                title="UTC",
                scale=alt.Scale(type="utc"),
                axis=alt.Axis(format="%d %b %H:%M", labelOverlap=True, tickCount=6),
            ),
            x2="end:T",
            y=alt.Y("what:N", title=None, sort=kinds, axis=alt.Axis(labelLimit=150, ticks=False)),
            color=alt.Color("what:N", legend=None, scale=_scale(SPAN_COLOURS)),
            tooltip=[alt.Tooltip("text:N", title="What")],
        )
        .properties(height=max(len(kinds), 2) * _ROW, width="container", autosize=_AUTOSIZE)
    )
    return chart


def teams(bars: Sequence[TeamBar], colours: dict[str, str], *, most: int) -> alt.Chart:
    """Return bars per team side by side, each with its number of GPUs, coloured by kind.

    Args:
        bars: What is drawn.
        colours: Kind -> its colour, in the order of the legend.
        most: Where the axis ends, so that charts one after the other can be compared; further out where a bar does.
    """
    end = max(most, *(bar.gpus for bar in bars))
    kinds = [kind for kind in colours if any(bar.kind == kind for bar in bars)]
    together = len({bar.team for bar in bars}) == len(bars)
    base: alt.Chart = alt.Chart(_data(asdict(bar) for bar in bars)).encode(
        x=alt.X(
            "gpus:Q",
            title="GPUs",
            axis=alt.Axis(format=".0f", tickCount=5),
            scale=alt.Scale(domain=[0, end]),
        ),
        y=alt.Y("team:N", title=None, axis=alt.Axis(ticks=False, labelFontSize=14)),
    )
    if not together:
        base = base.encode(yOffset=alt.YOffset("kind:N", sort=kinds))
    drawn = base.mark_bar().encode(
        color=alt.Color("kind:N", scale=_scale(colours), legend=_legend("Kind")),
        tooltip=[
            alt.Tooltip("team:N", title="Team"), alt.Tooltip("kind:N", title="What"),
            alt.Tooltip("gpus:Q", title="GPUs", format=".1f"),
        ],
    )  # fmt: skip
    chart: alt.Chart = drawn.properties(
        height=4 * (_ROW if together else 2 * _ROW), width="container", autosize=_AUTOSIZE
    )
    return chart


def _accounts(accounts: Sequence[str]) -> alt.Y:
    return alt.Y("account:N", title=None, sort=list(accounts), axis=alt.Axis(labelLimit=150, ticks=False))


def _hours_axis() -> alt.Axis:
    return alt.Axis(format=",.0f", tickCount=5, labelOverlap=True)


def _legend(title: str, *, line: bool = False) -> alt.Legend:
    legend = alt.Legend(title=None, orient="top", columns=2, labelLimit=240, description=title, offset=4)
    if line:
        legend.symbolType, legend.symbolSize, legend.symbolStrokeWidth = "stroke", 700, 3
    return legend


def _scale(colours: dict[str, str]) -> alt.Scale:
    return alt.Scale(domain=list(colours), range=list(colours.values()))


def _data(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {"values": list(rows)}
