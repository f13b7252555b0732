"""Charts as SVG text, for a page that loads nothing. Pure.

Each is a picture with a title and a description for those who do not see it; colours are told apart without seeing
them (Okabe and Ito), and by a mark or a dash. Names are escaped here, whoever gave them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import NamedTuple

WIDTH, LEFT, RIGHT, TOP = 860, 150, 60, 26
BAR, GAP = 14, 12
_PLOT = WIDTH - LEFT - RIGHT
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000")
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "12 4", "4 4", "1 4", "6 2 1 2")
_TICKS_S = (
    (1, "1 s"), (10, "10 s"), (60, "1 min"), (600, "10 min"), (3_600, "1 h"), (6 * 3_600, "6 h"), (86_400, "1 d"),
    (7 * 86_400, "7 d"), (30 * 86_400, "30 d"), (365 * 86_400, "1 y"),
)  # fmt: skip


class Bar(NamedTuple):
    """A length of time.

    Args:
        inner: Where the solid part ends (a median); None when it was not reached.
        outer: Where the pale part ends (a p90); likewise.
        longest: How long anything was seen: as far as a bar goes that was not reached.
    """

    inner: int | None
    outer: int | None
    longest: int | None


def colour(index: int) -> str:
    """Return the colour of the series of that number; they begin anew after the last."""
    return _COLOURS[index % len(_COLOURS)]


def legend(names: Sequence[str], *, marks: bool = False) -> str:
    """Return what tells series apart, as HTML: by the dash of a line, or by the form of a mark."""

    def sample(n: int) -> str:
        if marks:
            return _mark(n, 17, 8)
        return (
            f'<line x1="1" x2="33" y1="8" y2="8" stroke="{colour(n)}" stroke-width="4"'
            f' stroke-dasharray="{_DASHES[n % len(_DASHES)]}"/>'
        )

    entries = "".join(
        f'<li><svg width="34" height="16" aria-hidden="true">{sample(n)}</svg> {escape(name)}</li>'
        for n, name in enumerate(names)
    )
    return f'<ul class="legend">{entries}</ul>'


def length_bars(rows: Mapping[str, Sequence[Bar]], names: Sequence[str], *, title: str, told: str) -> str:
    """Return bars on a logarithmic scale of time: a group of bars for each row, a bar for each series.

    Args:
        rows: Label -> its bars, one for each name.
        names: The series.
        title: What it is.
        told: What it shows, for those who do not see it.
    """
    longest = max((bar.longest or 0 for bars in rows.values() for bar in bars), default=0)
    ticks = _ticks_up_to(longest)
    most = math.log10(ticks[-1][0] + 1)

    def x(length: float) -> float:
        return LEFT + _PLOT * min(math.log10(length + 1) / most, 1)

    parts, y = [], TOP
    for label, bars in rows.items():
        middle = y + len(bars) * BAR / 2 + 4
        parts.append(f'<text x="{LEFT - 10}" y="{middle:.0f}" text-anchor="end">{escape(label)}</text>')
        for n, bar in enumerate(bars):
            parts.append(_length_bar(bar, x, y, colour(n), f"{label}, {names[n]}"))
            y += BAR
        y += GAP
    grid = [_tick(x(at), TOP - 6, y - GAP, text) for at, text in ticks]
    return _svg("".join([*grid, *parts]), y + 18, title, told)


def _length_bar(bar: Bar, x: Callable[[float], float], y: int, fill: str, label: str) -> str:
    if bar.longest is None:
        return f'<text x="{LEFT + 6}" y="{y + BAR - 3}" class="none">no job</text>'
    inner = bar.longest if bar.inner is None else bar.inner
    outer = bar.longest if bar.outer is None else bar.outer
    reached = bar.outer is not None
    edge = "" if reached else f' stroke="{fill}" stroke-dasharray="3 2"'
    more = "" if reached else f'<text x="{x(outer) + 4:.1f}" y="{y + BAR - 3}">more</text>'
    said = escape(f"{label}: half within {_told(bar.inner)}, nine in ten within {_told(bar.outer)}")
    return (
        f"<g><title>{said}</title>"
        f'<rect x="{LEFT}" y="{y}" width="{max(x(outer) - LEFT, 1):.1f}" height="{BAR - 2}" fill="{fill}"'
        f' fill-opacity="0.35"{edge}/>'
        f'<rect x="{LEFT}" y="{y}" width="{max(x(inner) - LEFT, 1):.1f}" height="{BAR - 2}" fill="{fill}"'
        f' fill-opacity="{1 if bar.inner is not None else 0.35}"/>{more}</g>'
    )


def _told(length: int | None) -> str:
    return "more than was seen" if length is None else f"{length} s"


def _ticks_up_to(longest: int) -> list[tuple[int, str]]:
    enough = next((n for n, (at, _) in enumerate(_TICKS_S) if at >= longest), len(_TICKS_S) - 1)
    return list(_TICKS_S[: max(enough, 2) + 1])


def part_dots(
    rows: Mapping[str, Sequence[float | None]], names: Sequence[str], *, title: str, told: str, mark: float
) -> str:
    """Return dots from 0 to 100 %: a line for each row, a dot for each series, and a mark to compare with."""

    def x(part: float) -> float:
        return LEFT + _PLOT * min(part, 1)

    parts, y = [], TOP + 6
    for label, values in rows.items():
        parts.append(
            f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{escape(_short(label))}</text>'
            f'<line x1="{LEFT}" x2="{LEFT + _PLOT}" y1="{y}" y2="{y}" class="grid"/>'
        )
        parts += [
            f"<g><title>{escape(f'{label}, {names[n]}: {value:.1%}')}</title>{_mark(n, x(value), y)}</g>"
            for n, value in enumerate(values)
            if value is not None
        ]
        y += 22
    grid = [_tick(x(part / 4), TOP - 6, y - 8, f"{part * 25} %") for part in range(5)]
    at = (
        f'<line x1="{x(mark):.1f}" x2="{x(mark):.1f}" y1="{TOP - 6}" y2="{y - 8}" class="mark"/>'
        f'<text x="{x(mark):.1f}" y="{TOP - 10}" text-anchor="middle">{mark * 100:g} %</text>'
    )
    return _svg("".join([*grid, at, *parts]), y + 18, title, told)


def _mark(series: int, x: float, y: int) -> str:
    """Return a mark whose form tells the series, too."""
    fill = f'fill="{colour(series)}" fill-opacity="0.85"'
    forms = (
        f'<circle cx="{x:.1f}" cy="{y}" r="6" {fill}/>',
        f'<rect x="{x - 5:.1f}" y="{y - 5}" width="10" height="10" {fill}/>',
        f'<path d="M{x:.1f} {y - 7}l6.5 11h-13z" {fill}/>',
        f'<path d="M{x:.1f} {y - 7}l7 7l-7 7l-7-7z" {fill}/>',
    )
    return forms[series % len(forms)]


def lines(
    series: Mapping[str, Sequence[float | None]], *, step_s: int, title: str, told: str, percent: bool
) -> str:
    """Return lines over days: one for each series.

    Args:
        series: Name -> its values, from the beginning of the window on; None leaves a gap.
        step_s: How long each value stands.
        title: What it is.
        told: What it shows, for those who do not see it.
        percent: Whether the values are parts of one; then the scale ends at 100 %, and begins where all of them fit.
    """
    height = 220
    count = max((len(values) for values in series.values()), default=0)
    known = [value for values in series.values() for value in values if value is not None]
    least = next((part for part in (0.8, 0.6) if percent and min(known, default=0) >= part), 0.0)
    most = 1.0 if percent else _round_up(max(known, default=0))
    base = TOP + height

    def x(index: float) -> float:
        return LEFT + _PLOT * index / max(count - 1, 1)

    def y(value: float) -> float:
        return base - height * min((value - least) / (most - least), 1)

    parts = []
    for quarter in range(5):
        value = least + (most - least) * quarter / 4
        text = f"{value:.0%}".replace("%", " %") if percent else f"{value:g}"
        parts.append(
            f'<line x1="{LEFT}" x2="{LEFT + _PLOT}" y1="{y(value):.1f}" y2="{y(value):.1f}" class="grid"/>'
            f'<text x="{LEFT - 10}" y="{y(value) + 4:.1f}" text-anchor="end">{text}</text>'
        )
    days = count * step_s // 86_400
    every = max(1, -(-days // 10))
    parts += [
        f'<text x="{x(day * 86_400 / step_s):.1f}" y="{base + 18}" text-anchor="middle">day {day}</text>'
        for day in range(0, days + 1, every)
        if day * 86_400 // step_s < max(count, 1)
    ]
    for n, values in enumerate(series.values()):
        parts.append(
            f'<path d="{_path(values, x, y)}" fill="none" stroke="{colour(n)}" stroke-width="2"'
            f' stroke-dasharray="{_DASHES[n % len(_DASHES)]}"/>'
        )
    return _svg("".join(parts), base + 30, title, told)


def _path(values: Sequence[float | None], x: Callable[[float], float], y: Callable[[float], float]) -> str:
    steps, pen = [], "M"
    for index, value in enumerate(values):
        if value is None:
            pen = "M"
        else:
            steps.append(f"{pen}{x(index):.1f} {y(value):.1f}")
            pen = "L"
    return "".join(steps)


def _round_up(value: float) -> float:
    """Return the next number that is easy to divide by four, and no less than 4."""
    size = 4.0
    while size < value:
        size *= 2
    return size


def _short(label: str) -> str:
    """Return the end of a path that fits beside a chart."""
    return label if len(label) <= 22 else "…" + label[-21:]  # noqa: PLR2004 - what 140 pixels hold


def _tick(x: float, y1: float, y2: float, text: str) -> str:
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y1:.0f}" y2="{y2:.0f}" class="grid"/>'
        f'<text x="{x:.1f}" y="{y2 + 16:.0f}" text-anchor="middle">{text}</text>'
    )


def _svg(body: str, height: float, title: str, told: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(title)}</title><desc>{escape(told)}</desc>{body}</svg>"
    )


__all__ = ["Bar", "colour", "legend", "length_bars", "lines", "part_dots"]
