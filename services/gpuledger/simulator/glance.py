"""What is told of simulations first, in words for people: the same in the terminal and on a page. Pure."""

from collections.abc import Sequence

from gpuledger.policy.words import duration
from gpuledger.simulator.document import Simulation, Wait
from gpuledger.simulator.waits import GROUPS

PAST = "past"
"""The world of what really happened."""


def overview(reports: Sequence[Simulation]) -> list[tuple[str, list[str]]]:
    """Return what is told of each simulation first: a line's name and its value in each report."""
    rows: list[tuple[str, list[str]]] = [
        ("jobs", [f"{s.jobs:,}" for s in reports]),
        ("delivered / owed (window)", [part_text(s.delivered_over_owed.window) for s in reports]),
        (
            "… without what cannot be placed",
            [part_text(s.delivered_over_owed.placeable.window) for s in reports],
        ),
        ("… worst 7 days", [part_text(s.delivered_over_owed.worst_7_days) for s in reports]),
        ("… hour by hour", [part_text(s.delivered_over_owed.hourly) for s in reports]),
        ("… worst account", [part_text(s.delivered_over_owed.worst) for s in reports]),
        (
            "… accounts ≥ 95 %",
            [f"{s.delivered_over_owed.at_least_95} of {s.delivered_over_owed.of}" for s in reports],
        ),
        ("occupancy", [part_text(s.occupancy) for s in reports]),
        ("… with overhead", [part_text(s.occupancy_with_overhead) for s in reports]),
        ("… reserved", [_unless_past(s, part_text(s.shortfall.reserved)) for s in reports]),
        ("… free", [part_text(s.shortfall.free) for s in reports]),
        ("unallocated share", [part_text(s.unallocated_share) for s in reports]),
        ("demand / supply", [number_text(s.demand_over_supply) for s in reports]),
    ]
    for group in ("all", *GROUPS):
        rows += _two(f"wait, {group}", [s.wait_s[group] for s in reports])
    rows += [
        ("preemptions", [f"{s.preemptions:,}" for s in reports]),
        ("lost GPU-hours", [f"{s.lost_gpu_hours:,.1f}" for s in reports]),
        ("squatted GPU-hours", [_unless_past(s, f"{s.idle_gpu_hours:,.1f}") for s in reports]),
        (
            "repairs that needed a human",
            [_unless_past(s, f"{s.human_repairs} of {s.drains.begun}") for s in reports],
        ),
        (
            "… that need hands (an input)",
            ["-" if s.drains.hands is None else f"{s.drains.hands} of {s.drains.begun}" for s in reports],
        ),
        *_two("time to empty a host", [s.drains.time_to_empty_s for s in reports]),
        ("largest startable gang, mean GPUs", [f"{s.largest_startable_gang.mean:,.1f}" for s in reports]),
        ("took", [_unless_past(s, f"{s.wall_s:,.1f} s") for s in reports]),
    ]
    return rows


def part_text(part: float | None) -> str:
    """Return a part of one in per cent."""
    return "-" if part is None else f"{100 * part:.1f} %"


def number_text(value: float | None) -> str:
    """Return a number with two decimals."""
    return "-" if value is None else f"{value:.2f}"


def length_text(length: float | None, longest: int | None) -> str:
    """Return a length of time; one that was not reached is longer than any that can be told."""
    if longest is None:
        return "-"
    return "not reached" if length is None else duration(int(length))


def wait_text(wait: Wait) -> str:
    """Return the median and the p90 of some waits."""
    if wait.count == 0:
        return "-"
    return f"{length_text(wait.p50, wait.longest)}, {length_text(wait.p90, wait.longest)}"


def _unless_past(report: Simulation, text: str) -> str:
    """Return a figure; of the past nobody told it."""
    return "-" if report.world == PAST else text


def _two(label: str, waits: Sequence[Wait]) -> list[tuple[str, list[str]]]:
    return [
        (f"{label}: p50", [length_text(wait.p50, wait.longest) for wait in waits]),
        (f"{label}: p90", [length_text(wait.p90, wait.longest) for wait in waits]),
    ]


__all__ = ["PAST", "length_text", "number_text", "overview", "part_text", "wait_text"]
