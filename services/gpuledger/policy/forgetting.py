"""When the window forgets what was used: each burst by a date of its own, and an amount by the first instant.

A window of a fixed length moves on with time, so that use at an instant is forgotten one window later. What is used
meanwhile is not known yet: a date from here is an estimate. Pure; amounts are gpu_ms, instants seconds.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple


class Stretch(NamedTuple):
    """GPUs used over ``[from_s, to_s)``."""

    from_s: int
    to_s: int
    gpus_milli: int


class Burst(NamedTuple):
    """Use without a pause, and when the window forgets it.

    Args:
        from_s: Its beginning, within the window.
        to_s: Its end.
        gpu_ms: What was used.
        forgotten_from_s: When the window begins to forget it.
        forgotten_by_s: When nothing of it is left.
    """

    from_s: int
    to_s: int
    gpu_ms: int
    forgotten_from_s: int
    forgotten_by_s: int


def bursts(used: Iterable[Stretch], window_s: int) -> tuple[Burst, ...]:
    """Return the bursts of some use, the oldest first; stretches that touch are of one burst."""
    found: list[Burst] = []
    for stretch in sorted(used):
        if stretch.to_s <= stretch.from_s or not stretch.gpus_milli:
            continue
        gpu_ms = (stretch.to_s - stretch.from_s) * stretch.gpus_milli
        if found and stretch.from_s <= found[-1].to_s:
            last = found.pop()
            begin, end = last.from_s, max(last.to_s, stretch.to_s)
            found.append(Burst(begin, end, last.gpu_ms + gpu_ms, begin + window_s, end + window_s))
        else:
            begin, end = stretch.from_s, stretch.to_s
            found.append(Burst(begin, end, gpu_ms, begin + window_s, end + window_s))
    return tuple(found)


def forgotten_by_s(used: Iterable[Stretch], window_s: int, gpu_ms: int) -> int | None:
    """Return the first instant at which the window has forgotten an amount; None when there is not so much of it.

    Args:
        used: What was used within the window.
        window_s: The length of the window.
        gpu_ms: The amount, above 0.
    """
    left = gpu_ms
    for from_s, to_s, gpus_milli in _rates(used):
        if left <= (to_s - from_s) * gpus_milli:
            return from_s + -(-left // gpus_milli) + window_s
        left -= (to_s - from_s) * gpus_milli
    return None


def _rates(used: Iterable[Stretch]) -> Iterator[Stretch]:
    """Yield stretches that follow one another, each with all GPUs that were used in it."""
    changes: dict[int, int] = {}
    for from_s, to_s, gpus_milli in used:
        changes[from_s] = changes.get(from_s, 0) + gpus_milli
        changes[to_s] = changes.get(to_s, 0) - gpus_milli
    gpus_milli = 0
    for from_s, to_s in pairwise(sorted(changes)):
        gpus_milli += changes[from_s]
        if gpus_milli:
            yield Stretch(from_s, to_s, gpus_milli)
