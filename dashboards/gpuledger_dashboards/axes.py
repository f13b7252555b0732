"""What charts are put together from: axes, legends, scales and data of one look. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt

# The height is the plot's: a legend must not squeeze it.
AUTOSIZE = alt.AutoSizeParams(type="fit-x", contains="padding")
ROW = 34
"""Pixels of height that a row of bars takes."""

TICKS = 10


def stacked(colours: dict[str, str]) -> dict[str, Any]:
    """Return the encoding of bars that are stacked by part, in the order of the parts."""
    return {
        "color": alt.Color("part:N", scale=scale_of(colours), legend=legend_of("Part")),
        "order": alt.Order("order:Q"),
        "tooltip": [alt.Tooltip("key:N", title="Of"), alt.Tooltip("text:N", title="What")],
    }


def day_axis(days: int, ticks: int = TICKS) -> alt.X:
    """Return the axis of so many days, with about so many ticks, each at the beginning of a day."""
    every = {"interval": "day", "step": max(1, -(-days // ticks))}
    # Days are names of days; a viewer's zone must not move them.
    return alt.X(
        "day:T",
        title=None,
        scale=alt.Scale(type="utc"),
        axis=alt.Axis(format="%d %b", labelOverlap=True, grid=False, tickCount=every),
    )


def accounts_axis(accounts: Sequence[str]) -> alt.Y:
    """Return the axis of accounts, in their order."""
    return alt.Y("account:N", title=None, sort=list(accounts), axis=alt.Axis(labelLimit=150, ticks=False))


def hours_axis() -> alt.Axis:
    """Return the ticks of an axis of GPU-hours."""
    return alt.Axis(format=",.0f", tickCount=5, labelOverlap=True)


def legend_of(title: str, *, line: bool = False) -> alt.Legend:
    """Return a legend above the plot; of lines, with their dashes."""
    legend = alt.Legend(title=None, orient="top", columns=2, labelLimit=240, description=title, offset=4)
    if line:
        legend.symbolType, legend.symbolSize, legend.symbolStrokeWidth = "stroke", 700, 3
    return legend


def scale_of(colours: dict[str, str]) -> alt.Scale:
    """Return the scale that gives each thing its colour."""
    return alt.Scale(domain=list(colours), range=list(colours.values()))


def data_of(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return rows as a chart takes them."""
    return {"values": list(rows)}
