"""The figures of a report, one by one: rows of a table that other tools read. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from gpuledger.simulator.document import Simulation

_OF_THE_RUN = ("scenario", "world", "seed", "days", "warm_up_days")


class Figure(NamedTuple):
    """One figure.

    Args:
        scenario: Of which scenario.
        world: Of which world.
        seed: Of which seed.
        days: Of how many days.
        measure: Its place in the document, such as ``wait_s.debug.p90``; a position in a list is its number.
        value: The figure; None where there is none.
    """

    scenario: str
    world: str
    seed: int
    days: int
    measure: str
    value: float | None


def figures(report: Simulation) -> Iterator[Figure]:
    """Yield every figure of a report, in the order of the document; what is no number is left out."""
    for measure, value in _walk(msgspec.to_builtins(report), ""):
        if measure not in _OF_THE_RUN:
            yield Figure(report.scenario, report.world, report.seed, report.days, measure, value)


def _walk(node: Any, place: str) -> Iterator[tuple[str, float | None]]:  # noqa: ANN401 - any JSON
    match node:
        case Mapping():
            for key, below in node.items():
                yield from _walk(below, f"{place}.{key}" if place else key)
        case list():
            for number, below in enumerate(node):
                yield from _walk(below, f"{place}.{number}")
        case None | int() | float():
            yield place, None if node is None else float(node)


__all__ = ["Figure", "figures"]
