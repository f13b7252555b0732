"""The same scenario under several settings: which of them no other beats in every respect. Pure."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gpuledger.kernel.errors import Refused
from gpuledger.kernel.near import did_you_mean
from gpuledger.simulator.document import Simulation

Settings = Mapping[str, int | str]
POINTS_MAX = 10_000


class Goal(NamedTuple):
    """Something that a setting is judged by.

    Args:
        of: Reads it from a report; None is the worst there is.
        more_is_better: Whether the larger is the better.
        unit: ``part``, ``s``, ``GPU-h`` or nothing.
    """

    of: Callable[[Simulation], float | None]
    more_is_better: bool
    unit: str


GOALS: Mapping[str, Goal] = {
    "window": Goal(lambda s: s.delivered_over_owed.window, more_is_better=True, unit="part"),
    "worst": Goal(lambda s: s.delivered_over_owed.worst, more_is_better=True, unit="part"),
    "worst_7_days": Goal(lambda s: s.delivered_over_owed.worst_7_days, more_is_better=True, unit="part"),
    "occupancy": Goal(lambda s: s.occupancy, more_is_better=True, unit="part"),
    "debug_p90": Goal(lambda s: s.wait_s["debug"].p90, more_is_better=False, unit="s"),
    "all_p50": Goal(lambda s: s.wait_s["all"].p50, more_is_better=False, unit="s"),
    "all_p90": Goal(lambda s: s.wait_s["all"].p90, more_is_better=False, unit="s"),
    "largest_p90": Goal(lambda s: s.wait_s["largest"].p90, more_is_better=False, unit="s"),
    "lost": Goal(lambda s: s.lost_gpu_hours, more_is_better=False, unit="GPU-h"),
    "preemptions": Goal(lambda s: s.preemptions, more_is_better=False, unit=""),
    "human_repairs": Goal(lambda s: s.human_repairs, more_is_better=False, unit=""),
}
"""What a sweep can be judged by."""

USUAL = ("window", "debug_p90", "largest_p90", "lost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one combination of settings.

    Args:
        settings: The combination.
        goals: Goal -> the median of its values over the seeds; None when it was not reached.
        least: Goal -> the lowest value of a seed that reached it.
        most: Goal -> the highest.
        best: Whether no other combination is at least as good in every goal and better in one.
    """

    settings: Settings
    goals: Mapping[str, float | None]
    least: Mapping[str, float | None]
    most: Mapping[str, float | None]
    best: bool


def goals_named(names: Sequence[str]) -> dict[str, Goal]:
    """Return goals by name; the usual ones without any.

    Raises:
        Refused: When there is no such goal.
    """
    for name in names:
        if name not in GOALS:
            raise Refused(
                f"--goal: {name!r} is not known",
                hint=did_you_mean(name, GOALS, f"there are {', '.join(GOALS)}"),
            )
    return {name: GOALS[name] for name in names or USUAL}


def grid(options: Sequence[str]) -> list[Settings]:
    """Return every combination of ``KEY=VALUE,VALUE,...``; one without settings when there are no options.

    Raises:
        Refused: When an option is not written so, a key stands twice, or there are too many combinations.
    """
    axes: dict[str, list[int | str]] = {}
    for option in options:
        key, _, values = option.partition("=")
        if not key or not values or "" in values.split(","):
            raise Refused(
                f"--set: {option!r} is not KEY=VALUE,VALUE,...", hint="such as policy.window_s=259200,604800"
            )
        if key in axes:
            raise Refused(f"--set: {key} stands twice", hint="write all its values behind one =")
        axes[key] = [_value(text) for text in values.split(",")]
    points = 1
    for axis in axes.values():
        points *= len(axis)
    if points > POINTS_MAX:
        raise Refused(
            f"--set: {points} combinations are more than {POINTS_MAX}", hint="sweep fewer at a time"
        )
    return [dict(zip(axes, combination, strict=True)) for combination in itertools.product(*axes.values())]


def one_of_each(options: Sequence[str]) -> Settings:
    """Return what options of the form ``KEY=VALUE`` say.

    Raises:
        Refused: When one is not written so, or has several values.
    """
    points = grid(options)
    if len(points) > 1:
        raise Refused("--set: one value each", hint="such as policy.window_s=604800")
    return points[0]


def _value(text: str) -> int | str:
    return int(text) if text.removeprefix("-").isascii() and text.removeprefix("-").isdigit() else text


def judge(
    points: Sequence[tuple[Settings, Sequence[Simulation]]], goals: Mapping[str, Goal]
) -> list[Outcome]:
    """Say which combinations of settings are the best that there are.

    Args:
        points: Combinations, each with its reports of one or more seeds.
        goals: What they are judged by.
    """
    values = [
        {name: [goal.of(each) for each in reports] for name, goal in goals.items()} for _, reports in points
    ]
    medians = [{name: _median(of, goals[name]) for name, of in row.items()} for row in values]
    worths = [tuple(_worth(row[name], goal) for name, goal in goals.items()) for row in medians]
    return [
        Outcome(
            settings=settings,
            goals=row,
            least={
                name: min((v for v in found if v is not None), default=None) for name, found in of.items()
            },
            most={name: max((v for v in found if v is not None), default=None) for name, found in of.items()},
            best=not any(_beats(other, worth) for other in worths),
        )
        for (settings, _), row, of, worth in zip(points, medians, values, worths, strict=True)
    ]


def _median(values: Sequence[float | None], goal: Goal) -> float | None:
    """Return the value in the middle; the worse of two, as no value is made up."""
    ranked = sorted(values, key=lambda value: _worth(value, goal))
    return ranked[(len(ranked) - 1) // 2]


def _worth(value: float | None, goal: Goal) -> float:
    if value is None:
        return float("-inf")
    return value if goal.more_is_better else -value


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a >= b for a, b in zip(one, other, strict=True))


__all__ = ["GOALS", "USUAL", "Goal", "Outcome", "Settings", "goals_named", "grid", "judge", "one_of_each"]
