"""The reports of some simulations on one HTML page that loads nothing: charts, and their figures as tables. Pure."""

from collections.abc import Mapping, Sequence
from html import escape
from string import Template

from gpuledger.simulator import charts
from gpuledger.simulator.document import Simulation, Wait
from gpuledger.simulator.glance import number_text, overview, part_text, wait_text
from gpuledger.simulator.waits import GROUPS

ENOUGH = 0.95

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>$title</title>
<style>
:root { color-scheme: light dark; --line: #8884; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .3rem; }
p { margin: .3rem 0 .8rem; max-width: 46rem; }
svg text { font: 13px system-ui, sans-serif; fill: currentColor; } svg .none { font-style: italic; }
svg .grid { stroke: var(--line); } svg .mark { stroke: currentColor; stroke-dasharray: 5 4; }
figure { margin: 0; overflow-x: auto; } figure > svg { width: 100%; min-width: 38rem; height: auto; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.4rem; padding: 0; margin: .3rem 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .4rem 0; }
th, td { text-align: right; white-space: nowrap; padding: .2rem .7rem; border-bottom: 1px solid var(--line); }
th:first-child { text-align: left; } tbody th { font-weight: 400; }
details { margin: .4rem 0 1rem; } summary { cursor: pointer; }
footer { margin-top: 2.5rem; font-size: .9rem; }
</style>
</head>
<body>
<main>
<h1>$heading</h1>
<p>$about</p>
$body
</main>
<footer><p>Made by gpuledger simulate. docs/simulator.md explains each figure.</p></footer>
</body>
</html>
""")


def page(reports: Sequence[Simulation], names: Sequence[str] = ()) -> str:
    """Return the page.

    Args:
        reports: One or more, of one scenario as a rule; each is a series of the charts.
        names: What each of them is called; what tells them apart unless given.
    """
    names = names or _names(reports)
    scenarios = ", ".join(dict.fromkeys(each.scenario for each in reports))
    first = reports[0]
    about = (
        f"{first.gpus:g} GPUs; days measured: {first.days}, after a warm-up of {first.warm_up_days}; seed"
        f" {', '.join(dict.fromkeys(str(each.seed) for each in reports))}; {first.jobs} jobs in {names[0]}."
    )
    sections = [_overview(reports, names), _waits(reports, names), _owed(reports, names)]
    sections += [_occupancy(reports, names), _gangs(reports, names), _demand(reports, names)]
    return _PAGE.substitute(
        title=escape(f"Simulation of {scenarios}"),
        heading=escape(f"Simulation of {scenarios}"),
        about="</p>\n<p>".join(
            map(escape, (about, *dict.fromkeys(line for each in reports for line in each.notes)))
        ),
        body="\n".join(sections),
    )


def _names(reports: Sequence[Simulation]) -> list[str]:
    """Return what tells the reports apart: the world, with seed or scenario where that is not enough."""
    for tell in (
        lambda s: s.world,
        lambda s: f"{s.world}, seed {s.seed}",
        lambda s: f"{s.scenario}, {s.world}, seed {s.seed}",
    ):
        names = [tell(each) for each in reports]
        if len(set(names)) == len(names):
            return names
    return [
        f"{n}: {each.scenario}, {each.world}, seed {each.seed}" for n, each in enumerate(reports, start=1)
    ]


def _overview(reports: Sequence[Simulation], names: Sequence[str]) -> str:
    return f"<h2>At a glance</h2>\n{_table(['', *names], [[label, *cells] for label, cells in overview(reports)])}"


def _waits(reports: Sequence[Simulation], names: Sequence[str]) -> str:
    def bar(wait: Wait) -> charts.Bar:
        return charts.Bar(wait.p50, wait.p90, wait.longest)

    rows = {group: [bar(s.wait_s[group]) for s in reports] for group in (*GROUPS, "all")}
    table = [[group, *(wait_text(s.wait_s[group]) for s in reports)] for group in (*GROUPS, "all")]
    sizes = list(dict.fromkeys(size for s in reports for size in s.wait_s_by_size))
    table += [
        [
            f"{size} GPUs",
            *(wait_text(s.wait_s_by_size[size]) if size in s.wait_s_by_size else "-" for s in reports),
        ]
        for size in sizes
    ]
    title = "Waits by group: half of the jobs within the solid part, nine in ten within the pale one"
    chart = charts.length_bars(rows, names, title=title, told="The table below holds the same figures.")
    return _section(
        "Waits",
        "From the submission until GPUs are handed over, on a logarithmic scale. Who never started counts as longer.",
        charts.legend(names) + chart,
        _table(["p50, p90", *names], table),
    )


def _owed(reports: Sequence[Simulation], names: Sequence[str]) -> str:
    accounts = sorted({path for s in reports for path in s.delivered_over_owed.accounts})
    rows = {path: [s.delivered_over_owed.accounts.get(path) for s in reports] for path in accounts}
    table = [
        [path, *(f"{part_text(values[n])} of {_owed_hours(s, path)}" for n, s in enumerate(reports))]
        for path, values in rows.items()
    ]
    chart = charts.part_dots(
        rows, names, mark=ENOUGH, title="Delivered / owed by account (window reading)",
        told="A dot for each account and world; the dashed line is 95 %. The table below holds the same figures.",
    )  # fmt: skip
    return _section(
        "Delivered / owed",
        "What each account was given of what it was owed: the smaller of its entitlement and its demand, hour by hour.",
        charts.legend(names, marks=True) + chart,
        _table(["account", *names], table),
    )


def _owed_hours(report: Simulation, path: str) -> str:
    row = report.accounts.get(path)
    return "-" if row is None else f"{row.owed:,.0f} GPU-h"


def _occupancy(reports: Sequence[Simulation], names: Sequence[str]) -> str:
    series = {name: s.over_time.occupancy for name, s in zip(names, reports, strict=True)}
    return _over_time(
        "Occupancy", "GPU-time that runs held, of the healthy capacity.", reports, series, percent=True
    )


def _gangs(reports: Sequence[Simulation], names: Sequence[str]) -> str:
    series: dict[str, Sequence[float | None]] = {
        name: s.over_time.largest_gang for name, s in zip(names, reports, strict=True)
    }
    about = "The largest gang that could start at once without anybody leaving, in GPUs: how far capacity is in pieces."
    return _over_time("Largest startable gang", about, reports, series, percent=False)


def _demand(reports: Sequence[Simulation], names: Sequence[str]) -> str:
    series = {name: s.over_time.demand_over_supply for name, s in zip(names, reports, strict=True)}
    about = "GPUs of running and waiting jobs, divided by the healthy ones."
    return _over_time("Demand / supply", about, reports, series, percent=False)


def _over_time(
    heading: str,
    about: str,
    reports: Sequence[Simulation],
    series: Mapping[str, Sequence[float | None]],
    *,
    percent: bool,
) -> str:
    step_s = reports[0].over_time.step_s
    chart = charts.lines(
        series, step_s=step_s, percent=percent, title=f"{heading} over time",
        told="A line for each world. The table below holds the means by day.",
    )  # fmt: skip
    text = part_text if percent else number_text
    steps = 86_400 // step_s
    days = max((len(values) for values in series.values()), default=0) // steps
    table = [
        [
            f"day {day + 1}",
            *(text(_mean(values[day * steps : (day + 1) * steps])) for values in series.values()),
        ]
        for day in range(days)
    ]
    return _section(heading, about, charts.legend(list(series)) + chart, _table(["", *series], table))


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _section(heading: str, about: str, chart: str, table: str) -> str:
    return (
        f"<section><h2>{escape(heading)}</h2><p>{escape(about)}</p>"
        f'<figure tabindex="0">{chart}</figure>'
        f"<details><summary>{escape(heading)} as a table</summary>{table}</details></section>"
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    return f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


__all__ = ["page"]
