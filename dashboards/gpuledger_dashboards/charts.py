"""The charts, as specifications made of shaped values. Pure: no Streamlit.

Colours are of the Okabe-Ito palette, told apart by people who see fewer colours, and never say anything
alone: layers also have a dash, bars a place and a height.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

import altair as alt

from gpuledger_dashboards.axes import (
    AUTOSIZE,
    ROW,
    accounts_axis,
    data_of,
    day_axis,
    hours_axis,
    legend_of,
    scale_of,
    stacked,
)
from gpuledger_dashboards.budgets import PART_BUDGET, PART_CHARGED, PART_FREE, Bar, Cause, Mark
from gpuledger_dashboards.fair_share import ENTITLED, USED
from gpuledger_dashboards.fair_share import Bar as ServedBar
from gpuledger_dashboards.lesson import Bar as TeamBar
from gpuledger_dashboards.views import DayValue, Layer
from gpuledger_dashboards.waits import CLASSES, HALF, MOST, DayOfWaits, Stretch
from gpuledger_dashboards.waste import IDLE, LOW, REST, SQUATTED, UNMEASURED
from gpuledger_dashboards.waste import Part as WastePart
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
CLASS_COLOURS = {CLASSES["allocated"]: "#0072b2", CLASSES["unallocated"]: "#e69f00"}
WAIT_COLOURS = {HALF: "#0072b2", MOST: "#d55e00"}
WASTE_COLOURS = {
    SQUATTED: "#d55e00", IDLE: "#e69f00", LOW: "#f0e442", REST: "#0072b2", UNMEASURED: "#a9b4c0",
}  # fmt: skip
INK = {"light": "#16202b", "dark": "#e8edf2"}
"""Theme -> colour of text inside a chart."""

_OUTLINE = "#7d8894"

Layered = alt.LayerChart | alt.FacetChart
"""What ``alt.layer`` is annotated to return."""

_TIER = 84
_SLAB = 44
_BASE_HALF = 1.0
_STEP_HALF = 0.17


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
        alt.Chart(data_of(corner for corner in corners if corner["kind"] == kind))
        .mark_area(orient="horizontal", **style)
        .encode(
            x=x,
            x2="right:Q",
            y=height,
            color=alt.Color("layer:N", legend=None, scale=scale_of(COLOURS)),
            detail="layer:N",
        )
        for kind, style in (
            ("whole", {"fillOpacity": 0.14, "stroke": _OUTLINE, "strokeWidth": 1}),
            ("part", {"fillOpacity": 0.95}),
        )
    ]
    text = (
        alt.Chart(data_of(labels))
        .mark_text(fontSize=18, fontWeight="bold", baseline="bottom", color=ink)
        .encode(x=alt.XDatum(0), y=height, text="text:N")
    )
    return alt.layer(*slabs, text).properties(height=count * _TIER, width="container", autosize=AUTOSIZE)


def trend(values: Sequence[DayValue]) -> alt.Chart:
    """Return a line per layer over the days; a day without a value is a gap."""
    days = len({value.day for value in values})
    chart: alt.Chart = (
        alt.Chart(data_of(asdict(value) for value in values))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=day_axis(days),
            y=alt.Y(
                "value:Q",
                title=None,
                axis=alt.Axis(format=".0%", tickCount=6),
                scale=alt.Scale(domain=[0, 1], clamp=True),
            ),
            color=alt.Color("layer:N", scale=scale_of(COLOURS), legend=legend_of("Layer", line=True)),
            strokeDash=alt.StrokeDash(
                "layer:N",
                scale=alt.Scale(domain=list(DASHES), range=list(DASHES.values())),
                legend=legend_of("Layer", line=True),
            ),
            tooltip=[
                alt.Tooltip("day:N", title="Day"),
                alt.Tooltip("layer:N", title="Layer"),
                alt.Tooltip("text:N", title="Value"),
                alt.Tooltip("sentence:N", title="Of"),
            ],
        )
        .properties(height=300, width="container", autosize=AUTOSIZE)
    )
    return chart


def course_of_layer(values: Sequence[DayValue], target: Decimal | None, ink: str) -> Layered:
    """Return one layer over the days as a small line, its target as a dashed one; a day without a value is a gap."""
    scale = alt.Scale(domain=[0, 1], clamp=True)
    y = alt.Y("value:Q", title=None, axis=alt.Axis(format=".0%", values=[0, 0.5, 1]), scale=scale)
    title = values[0].layer
    parts = [
        alt.Chart(data_of(asdict(value) for value in values))
        .mark_line(strokeWidth=2.5, color=COLOURS[title])
        .encode(
            x=day_axis(len(values), 3),
            y=y,
            tooltip=[
                alt.Tooltip("day:N", title="Day"),
                alt.Tooltip("text:N", title=title),
                alt.Tooltip("sentence:N", title="Of"),
            ],
        )
    ]
    if target is not None:
        rule = alt.Chart(data_of([{"target": float(target)}])).mark_rule(strokeDash=[5, 4], color=ink)
        parts.append(rule.encode(y=alt.Y("target:Q", scale=scale)))
    return alt.layer(*parts).properties(height=96, width="container", autosize=AUTOSIZE)


def budget_bars(bars: Sequence[Bar], marks: Sequence[Mark], ink: str) -> Layered:
    """Return a bar per account: the budget wide and pale, charged and free use on it, a mark where owed."""
    accounts = list(dict.fromkeys(bar.account for bar in bars))
    y = accounts_axis(accounts)
    colour = alt.Color("part:N", scale=scale_of(PARTS), legend=legend_of("Part"))
    tooltip = [alt.Tooltip("account:N", title="Account"), alt.Tooltip("text:N", title="GPU-h")]

    def layer(parts: Iterable[str], thickness: int) -> alt.Chart:
        chosen = set(parts)
        drawn: alt.Chart = (
            alt.Chart(data_of(asdict(bar) for bar in bars if bar.part in chosen))
            .mark_bar(height=thickness)
            .encode(
                x=alt.X("start:Q", title="GPU-h", axis=hours_axis()),
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
            alt.Chart(data_of(asdict(mark) for mark in marks))
            .mark_tick(thickness=3, height=24, color=ink)
            .encode(x=alt.X("at:Q"), y=y, tooltip=tooltip)
        )
    return alt.layer(*charts).properties(
        height=max(len(accounts), 3) * ROW, width="container", autosize=AUTOSIZE
    )


def variance(causes: Sequence[Cause], accounts: Sequence[str]) -> alt.Chart:
    """Return budget less delivered of each account, stacked by cause; below zero is more than budgeted."""
    chart: alt.Chart = (
        alt.Chart(data_of(asdict(cause) for cause in causes))
        .mark_bar(height=18)
        .encode(
            x=alt.X("value:Q", title="Budget - delivered, GPU-h", axis=hours_axis(), stack="zero"),
            y=accounts_axis(accounts),
            color=alt.Color("cause:N", scale=scale_of(CAUSE_COLOURS), legend=legend_of("Cause")),
            order=alt.Order("order:Q"),
            tooltip=[alt.Tooltip("account:N", title="Account"), alt.Tooltip("text:N", title="Cause")],
        )
        .properties(height=max(len(accounts), 3) * ROW, width="container", autosize=AUTOSIZE)
    )
    return chart


def served(bars: Sequence[ServedBar], accounts: Sequence[str]) -> Layered:
    """Return two bars per account: entitled wide and pale, used narrow on it."""
    y = accounts_axis(accounts)
    layers = [
        alt.Chart(data_of(asdict(bar) for bar in bars if bar.part == part))
        .mark_bar(height=thickness)
        .encode(
            x=alt.X("gpu_hours:Q", title="GPU-h", axis=hours_axis(), stack=None),
            y=y,
            color=alt.Color("part:N", scale=scale_of(SERVED_COLOURS), legend=legend_of("Part")),
            tooltip=[alt.Tooltip("account:N", title="Account"), alt.Tooltip("text:N", title="GPU-h")],
        )
        for part, thickness in ((ENTITLED, 24), (USED, 11))
    ]
    return alt.layer(*layers).properties(
        height=max(len(accounts), 3) * ROW, width="container", autosize=AUTOSIZE
    )


def waits(stretches: Sequence[Stretch]) -> Layered:
    """Return a bar per class and size, from when half had started to when nine in ten had, on an axis of powers.

    A dot stands where half had: it is seen where nine in ten had as soon, or where that is not known yet.
    """
    sizes = list(dict.fromkeys(one.size for one in sorted(stretches, key=_fewest)))
    base = alt.Chart(data_of(asdict(one) for one in stretches)).encode(
        x=alt.X(
            "p50_min:Q",
            title="minutes of waiting",
            scale=alt.Scale(type="log", nice=True),
            axis=alt.Axis(format="~g", tickCount=5, labelOverlap=True),
        ),
        y=alt.Y("size:N", title="GPUs asked for", sort=sizes, axis=alt.Axis(ticks=False)),
        yOffset=alt.YOffset("klass:N", sort=list(CLASS_COLOURS)),
        color=alt.Color("klass:N", scale=scale_of(CLASS_COLOURS), legend=legend_of("Class")),
        tooltip=[
            alt.Tooltip("size:N", title="GPUs"),
            alt.Tooltip("klass:N", title="Class"),
            alt.Tooltip("text:N", title="Waited"),
        ],
    )
    bars = base.mark_bar(height=7).encode(x2="p90_min:Q").transform_filter("isValid(datum.p90_min)")
    dots = base.mark_circle(size=110, opacity=1).transform_filter("isValid(datum.p50_min)")
    return alt.layer(bars, dots).properties(
        height=max(len(sizes), 3) * ROW, width="container", autosize=AUTOSIZE
    )


def wait_days(values: Sequence[DayOfWaits]) -> alt.Chart:
    """Return two lines over the days, on an axis of powers; a day of which it is not known is a gap."""
    chart: alt.Chart = (
        alt.Chart(data_of(asdict(value) for value in values))
        .mark_line(strokeWidth=2.5, point=True)
        .encode(
            x=day_axis(len({value.day for value in values})),
            y=alt.Y(
                "minutes:Q",
                title="minutes",
                scale=alt.Scale(type="log"),
                axis=alt.Axis(format="~g", tickCount=5),
            ),
            color=alt.Color("part:N", scale=scale_of(WAIT_COLOURS), legend=legend_of("Part", line=True)),
            strokeDash=alt.StrokeDash("part:N", sort=list(WAIT_COLOURS), legend=legend_of("Part", line=True)),
            tooltip=[
                alt.Tooltip("day:N", title="Day"),
                alt.Tooltip("part:N", title="Part"),
                alt.Tooltip("text:N", title="Within"),
            ],
        )
        .properties(height=260, width="container", autosize=AUTOSIZE)
    )
    return chart


def waste(parts: Sequence[WastePart]) -> alt.Chart:
    """Return a bar per account of its charged time, stacked by what became of it."""
    accounts = list(dict.fromkeys(part.key for part in parts))
    chart: alt.Chart = (
        alt.Chart(data_of(asdict(part) for part in parts))
        .mark_bar(height=18)
        .encode(
            x=alt.X("gpu_hours:Q", title="charged GPU-h", axis=hours_axis()),
            y=alt.Y("key:N", title=None, sort=accounts, axis=alt.Axis(labelLimit=150, ticks=False)),
            **stacked(WASTE_COLOURS),
        )
        .properties(height=max(len(accounts), 3) * ROW, width="container", autosize=AUTOSIZE)
    )
    return chart


def waste_days(parts: Sequence[WastePart]) -> alt.Chart:
    """Return a bar per day of charged time, stacked by what became of it."""
    chart: alt.Chart = (
        alt.Chart(data_of(asdict(part) for part in parts))
        .mark_bar()
        .encode(
            x=alt.X("key:O", title=None, axis=alt.Axis(labelOverlap=True, labelAngle=0)),
            y=alt.Y("gpu_hours:Q", title="GPU-h", axis=hours_axis()),
            **stacked(WASTE_COLOURS),
        )
        .properties(height=260, width="container", autosize=AUTOSIZE)
    )
    return chart


def _fewest(one: Stretch) -> int:
    first = one.size.partition("-")[0]
    return int(first) if first.isdigit() else 0


def course(spans: Sequence[Span]) -> alt.Chart:
    """Return a workload's life as bars on a line of time, a row for each thing that it did."""
    kinds = [kind for kind in SPAN_COLOURS if any(span.what == kind for span in spans)]
    chart: alt.Chart = (
        alt.Chart(data_of(asdict(span) for span in spans))
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
            color=alt.Color("what:N", legend=None, scale=scale_of(SPAN_COLOURS)),
            tooltip=[alt.Tooltip("text:N", title="What")],
        )
        .properties(height=max(len(kinds), 2) * ROW, width="container", autosize=AUTOSIZE)
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
    base: alt.Chart = alt.Chart(data_of(asdict(bar) for bar in bars)).encode(
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
        color=alt.Color("kind:N", scale=scale_of(colours), legend=legend_of("Kind")),
        tooltip=[
            alt.Tooltip("team:N", title="Team"), alt.Tooltip("kind:N", title="What"),
            alt.Tooltip("gpus:Q", title="GPUs", format=".1f"),
        ],
    )  # fmt: skip
    chart: alt.Chart = drawn.properties(
        height=4 * (ROW if together else 2 * ROW), width="container", autosize=AUTOSIZE
    )
    return chart
