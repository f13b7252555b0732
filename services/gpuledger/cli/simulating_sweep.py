"""``gpuledger simulate sweep``: one scenario under many settings, in several processes."""

import os
import signal
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from gpuledger.cli.options import Json
from gpuledger.cli.output import counted, note, print_json, print_table, progress
from gpuledger.cli.simulating import Days, OneWorld, ScenarioName, Seed, one_world

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuledger.simulator.document import Simulation
    from gpuledger.simulator.playing import Play
    from gpuledger.simulator.sweep import Outcome


def sweep(
    scenario: ScenarioName,
    settings: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="KEY=VALUE,VALUE",
            help="Values of a setting, such as policy.window_s=259200,604800; repeatable: every combination is run.",
        ),
    ],
    world: OneWorld = "gpuledger",
    goal: Annotated[
        list[str] | None,
        typer.Option(
            "--goal",
            help="What to judge by: window, debug_p90, largest_p90 and lost unless given; repeatable.",
        ),
    ] = None,
    seed: Seed = None,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, max=1000, help="Run so many seeds of each, and judge medians.")
    ] = 1,
    days: Days = None,
    processes: Annotated[
        int | None,
        typer.Option(
            "--processes", min=1, max=256, help="Run so many at once; one for each core unless given."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a scenario under every combination of some settings, and say which of them no other beats."""
    from gpuledger.simulator.playing import Play, found, set_all
    from gpuledger.simulator.sweep import goals_named, grid, judge

    name = one_world(world)
    goals, points = goals_named(goal or []), grid(settings)
    told = found(scenario)
    for point in points:
        set_all(told, point)  # what cannot be set is refused before anything is run
    first = told.seed if seed is None else seed
    plays = [
        Play(scenario=scenario, world=name, seed=first + n, days=days, settings=point)
        for point in points
        for n in range(seeds)
    ]
    reports = _run_all(plays, processes or os.cpu_count() or 1)
    outcomes = judge([(point, reports[n * seeds : (n + 1) * seeds]) for n, point in enumerate(points)], goals)
    if as_json:
        print_json(_document(reports[0], [first + n for n in range(seeds)], outcomes))
    else:
        _print(reports[0], seeds, outcomes)


class Failed(NamedTuple):
    """An error of a simulation, as it comes from another process.

    Args:
        message: What was wrong.
        hint: What a person can do about it.
        refused: Whether it was the caller's fault.
    """

    message: str
    hint: str
    refused: bool


def run_here(play: "Play") -> "Simulation | Failed":
    """Run a simulation in this process, which the command started for it."""
    from gpuledger.kernel.errors import GpuledgerError, Refused
    from gpuledger.simulator import playing

    try:
        return playing.run(play)
    except GpuledgerError as error:  # as a value: an error with arguments of its own does not travel
        return Failed(error.message, error.hint, isinstance(error, Refused))


def _run_all(plays: "Sequence[Play]", processes: int) -> "list[Simulation]":
    """Run simulations in processes of their own; the order of the reports is that of the plays."""
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import active_children, get_context

    from gpuledger.kernel.errors import GpuledgerError, Refused

    found: dict[int, Simulation] = {}
    # Spawned, not forked: a fork would take over whatever threads and locks the command has.
    pool = ProcessPoolExecutor(
        min(processes, len(plays)), mp_context=get_context("spawn"), initializer=end_with_the_command
    )
    try:
        with progress("sweep", len(plays)) as advance:
            advance(0)
            waiting = {pool.submit(run_here, play): number for number, play in enumerate(plays)}
            for done in as_completed(waiting):
                outcome = done.result()
                if isinstance(outcome, Failed):
                    raise (Refused if outcome.refused else GpuledgerError)(outcome.message, hint=outcome.hint)
                found[waiting[done]] = outcome
                advance(len(found))
    except BrokenProcessPool as error:
        raise GpuledgerError(
            "a process of the sweep was killed",
            hint="run fewer at once, with --processes: each needs memory of its own",
        ) from error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        if len(found) < len(plays):
            for child in active_children():
                child.terminate()
    return [found[number] for number in range(len(plays))]


def end_with_the_command() -> None:
    """Leave it to the command to say that it was interrupted: this process just ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _document(report: "Simulation", seeds: list[int], outcomes: "Sequence[Outcome]") -> dict[str, Any]:
    return {
        "scenario": report.scenario,
        "world": report.world,
        "days": report.days,
        "seeds": seeds,
        "points": [
            {
                "set": each.settings,
                "goals": each.goals,
                "least": each.least,
                "most": each.most,
                "best": each.best,
            }
            for each in outcomes
        ],
    }


def _print(report: "Simulation", seeds: int, outcomes: "Sequence[Outcome]") -> None:
    keys, goals = list(outcomes[0].settings), list(outcomes[0].goals)
    rows = [
        (
            "*" if each.best else "",
            *(each.settings[key] for key in keys),
            *(_text(name, each.goals[name]) for name in goals),
        )
        for each in outcomes
    ]
    title = f"{report.scenario}, {report.world}: {counted(report.days, 'day')}, medians of {counted(seeds, 'seed')}"
    print_table(["best", *(f">{key}" for key in keys), *(f">{name}" for name in goals)], rows, title=title)
    note("*: no other combination is at least as good in every column and better in one")


def _text(name: str, value: float | None) -> str:
    from gpuledger.policy.words import duration
    from gpuledger.simulator.glance import part_text
    from gpuledger.simulator.sweep import GOALS

    if value is None:
        return "not reached"
    match GOALS[name].unit:
        case "part":
            return part_text(value)
        case "s":
            return duration(int(value))
        case _:
            return f"{value:,.1f}".removesuffix(".0")
