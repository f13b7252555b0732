"""``gpuledger simulate sweep``: one scenario under many settings, in several processes."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpuledger.cli.options import Json
from gpuledger.cli.output import counted, note, print_json, print_table
from gpuledger.cli.simulating import Days, OneWorld, ScenarioName, Seed, one_world
from gpuledger.cli.simulating_processes import Done, Jobs, run_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuledger.simulator.document import Simulation
    from gpuledger.simulator.sweep import Outcome, Settings


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
    jobs: Jobs = None,
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

    def done_so_far(done: Done) -> None:
        whole = _whole(points, seeds, done)
        if whole and not as_json:
            _print(whole[0][1][0], seeds, judge(whole, goals))

    length_s = (told.warm_up_days + (days or told.days)) * 86_400
    reports = run_all("sweep", plays, length_s, jobs, interrupted=done_so_far)
    outcomes = judge(_whole(points, seeds, dict(enumerate(reports))), goals)
    if as_json:
        print_json(_document(reports[0], [first + n for n in range(seeds)], outcomes))
    else:
        _print(reports[0], seeds, outcomes)


def _whole(points: "Sequence[Settings]", seeds: int, done: Done) -> "list[tuple[Settings, list[Simulation]]]":
    """Return the combinations of which all seeds are done, with their reports."""
    places = [range(n * seeds, (n + 1) * seeds) for n in range(len(points))]
    return [
        (point, [done[place] for place in of])
        for point, of in zip(points, places, strict=True)
        if all(place in done for place in of)
    ]


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
