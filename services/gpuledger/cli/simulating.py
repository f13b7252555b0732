"""``gpuledger simulate``: a cluster that exists in memory only, under the production policy and others."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from gpuledger.cli.options import Json
from gpuledger.cli.output import Advance, counted, note, print_json, print_table, progress
from gpuledger.cli.simulating_processes import Jobs, cores, run_all

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typer._click.core import Context

    from gpuledger.simulator.document import Simulation

RUN, ALL = "run", "all"


class RunUnlessSaid(TyperGroup):
    """``simulate SCENARIO`` is short for ``simulate run SCENARIO``."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Put ``run`` in front of what begins with no command."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [RUN, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=RunUnlessSaid,
    help="What would come of it: a simulated cluster under the production policy, or under another."
    " `gpuledger simulate SCENARIO` runs one.",
    no_args_is_help=True,
)

ScenarioName = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO", help="A name such as institute, or a YAML file; see docs/simulator.md."
    ),
]
OneWorld = Annotated[str, typer.Option("--world", help="Who decides: old, fifo, multifactor or gpuledger.")]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, help="What chance is drawn from; the scenario's own unless given."),
]
Days = Annotated[
    int | None,
    typer.Option(
        "--days", min=1, max=3660, help="How many days are measured; the scenario's own unless given."
    ),
]
ReportFile = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE.html", help="Write a page with charts; it loads nothing."),
]
Worlds = Annotated[
    list[str] | None,
    typer.Option(
        "--world", help="Who decides: old, fifo, multifactor, gpuledger, or all of them; repeatable."
    ),
]
ParquetFile = Annotated[
    Path | None,
    typer.Option("--parquet", metavar="FILE", help="Write every figure as a row; needs pyarrow."),
]
EventsFile = Annotated[
    Path | None,
    typer.Option(
        "--events",
        metavar="FILE",
        help="Write what a ledger would have been told, for `gpuledger import events`; of one world.",
    ),
]
SwfFile = Annotated[
    Path | None,
    typer.Option(
        "--swf",
        metavar="FILE",
        help="Write what was submitted, in the Standard Workload Format, for other simulators; of one world.",
    ),
]


@app.command(RUN)
def run(
    scenario: ScenarioName,
    world: Worlds = None,
    seed: Seed = None,
    days: Days = None,
    report: ReportFile = None,
    parquet: ParquetFile = None,
    events: EventsFile = None,
    swf: SwfFile = None,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Simulate a scenario under one or more worlds, side by side on the same workload.

    Without --world all worlds are run. Nothing is read from a ledger, and nothing is booked.
    """
    from gpuledger.cli.simulated_files import parquet_writer, see_to_place, write_page
    from gpuledger.kernel.errors import Refused
    from gpuledger.simulator.playing import Play, prepare, run_prepared

    names = worlds_named(world or [ALL])
    for option, path in (("--events", events), ("--swf", swf)):
        if path is not None and len(names) > 1:
            raise Refused(f"{option}: this is told of one world", hint="name it with --world")
    for option, path in (("--report", report), ("--parquet", parquet), ("--events", events), ("--swf", swf)):
        if path is not None:
            see_to_place(option, path)
    write_parquet = parquet_writer(parquet) if parquet is not None else None
    plays = [Play(scenario=scenario, world=name, seed=seed, days=days) for name in names]
    told = prepare(plays[0])
    for line in told.notes:
        note(line)
    length_s = told.end_s - told.start_s
    if len(names) > 1 and (jobs or cores()) > 1:
        reports = run_all(f"simulate {told.name}, {counted(len(names), 'world')}", plays, length_s, jobs)
    else:
        reports = []
        for name in names:
            with progress(f"simulate {told.name}, {name}", length_s) as advance:
                watch = since(told.start_s, advance)
                reports.append(run_prepared(told, name, watch=watch, events=events, swf=swf))
    if report is not None:
        write_page(report, reports)
    if write_parquet is not None:
        write_parquet(reports)
    print_json(as_document(reports)) if as_json else print_reports(reports)


def worlds_named(given: "Sequence[str]") -> list[str]:
    """Return the worlds that are meant, each once.

    Raises:
        Refused: When there is no such world.
    """
    from gpuledger.kernel.errors import Refused
    from gpuledger.kernel.near import did_you_mean
    from gpuledger.simulator.worlds.registry import WORLDS

    for name in given:
        if name not in {*WORLDS, ALL}:
            known = [*WORLDS, ALL]
            raise Refused(
                f"--world: there is no world {name!r}",
                hint=did_you_mean(name, known, f"there are {', '.join(known)}"),
            )
    return list(WORLDS) if ALL in given else list(dict.fromkeys(given))


def one_world(given: str) -> str:
    """Return the world that is meant.

    Raises:
        Refused: When there is no such world, or several are meant.
    """
    from gpuledger.kernel.errors import Refused

    if given == ALL:
        raise Refused("--world: this is of one world", hint="name it")
    return worlds_named([given])[0]


def since(start_s: int, advance: Advance) -> "Callable[[int], None]":
    """Return what moves a progress bar to a simulated instant."""

    def watch(at_s: int) -> None:
        advance(at_s - start_s)

    return watch


def as_document(reports: "Sequence[Simulation]") -> Any:  # noqa: ANN401 - any JSON document
    """Return what ``--json`` prints."""
    from gpuledger.simulator.document import as_json

    return as_json(reports)


def print_reports(reports: "Sequence[Simulation]") -> None:
    """Print reports side by side, then what each account got."""
    from gpuledger.simulator.glance import overview

    first = reports[0]
    title = f"{first.scenario}: {first.gpus:g} GPUs, {counted(first.days, 'day')}, seed {first.seed}"
    worlds = [each.world for each in reports]
    print_table(
        ["", *(f">{name}" for name in worlds)],
        [(label, *cells) for label, cells in overview(reports)],
        title=title,
    )
    rows = [
        (path, *(_given(each, path) for each in reports))
        for path in sorted({path for each in reports for path in each.accounts})
    ]
    print_table(["delivered / owed, GPU-hours", *(f">{name}" for name in worlds)], rows)


def _given(report: "Simulation", path: str) -> str:
    from gpuledger.simulator.glance import part_text

    row = report.accounts.get(path)
    return "-" if row is None else f"{part_text(row.window)}, {row.allocated + row.unallocated:,.0f}"
