"""Hosts of a ledger as hosts of a simulation: what is installed, and what broke or was to be repaired, when. Pure.

A simulation has its hosts from the beginning to the end, whole. One that came later or went earlier is being repaired
in the meantime, and one of which some GPUs can be used is healthy.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.ledger.inventory import HostInterval
from gpuledger.simulator.facts import HostChanged, HostCondition
from gpuledger.simulator.scenario import FaultRecord, HostSpec, Outage


class Stretch(NamedTuple):
    """A host in one condition over ``[from_s, to_s)``."""

    from_s: int
    to_s: int
    condition: HostCondition
    planned: bool


class Installed(NamedTuple):
    """The hosts of a stretch of time.

    Args:
        hosts: What there was, by name; the most GPUs that each had.
        faults: What broke, and what was to be repaired.
        changes: The conditions of all of them as they were, in order of time.
        notes: What a simulation cannot show of it.
    """

    hosts: tuple[HostSpec, ...]
    faults: FaultRecord
    changes: tuple[HostChanged, ...]
    notes: tuple[str, ...]


_UP = HostCondition.HEALTHY, False
_ABSENT = HostCondition.DOWN, True
_RANKED = ("healthy", "reserved", "draining", "maintenance", "unhealthy")
"""Of several states at once, of parts of a host, the first is that of the whole."""
_CONDITIONS: Mapping[str, tuple[HostCondition, bool]] = {
    "healthy": _UP,
    "reserved": _UP,
    "draining": (HostCondition.DRAINING, True),
    "maintenance": _ABSENT,
    "unhealthy": (HostCondition.DOWN, False),
}


def installed(
    intervals: Iterable[HostInterval], busy: Mapping[str, Sequence[int]], *, start_s: int, end_s: int
) -> Installed:
    """Return the hosts of ``[start_s, end_s)``.

    Args:
        intervals: What the ledger says of them.
        busy: Host -> when something that ran on it was over, ascending.
        start_s: Begin of the time.
        end_s: Its end, exclusive.
    """
    by_host: dict[str, list[HostInterval]] = {}
    for interval in intervals:
        if interval.from_s < end_s and (interval.to_s is None or interval.to_s > start_s):
            by_host.setdefault(interval.host, []).append(interval)
    hosts, changes = [], []
    failed: dict[str, list[Outage]] = {}
    wanted: dict[str, list[Outage]] = {}
    partial = passing = 0
    for name, own in sorted(by_host.items()):
        stretches = _stretches(own, start_s, end_s)
        begins = {max(interval.from_s, start_s) for interval in own}
        gpus = max(_gpus(own, at_s) for at_s in begins)
        newest = max(own, key=lambda interval: interval.from_s)
        hosts.append(HostSpec(host=name, gpus_milli=gpus * GPU_MILLI, gpu_model=newest.gpu_model))
        failed[name], wanted[name] = _outages(stretches, busy.get(name, ()), end_s)
        changes += [
            HostChanged(at_s=s.from_s, host=name, condition=s.condition, planned=s.planned)
            for s in stretches
            if s.from_s > start_s or (s.condition, s.planned) != _UP
        ]
        partial += any(0 < _gpus(own, at_s, only_up=True) < _gpus(own, at_s) for at_s in begins)
        passing += any(_gpus(own, s.from_s) == 0 for s in stretches)
    counted = (
        (partial, "hosts of which some GPUs could not be used count as whole then"),
        (
            passing,
            "hosts that came later or went earlier count as installed, and in maintenance, until or since then",
        ),
    )
    return Installed(
        tuple(hosts),
        FaultRecord(failed=failed, wanted=wanted),
        tuple(sorted(changes, key=lambda change: (change.at_s, change.host))),
        tuple(f"{count} {what}" for count, what in counted if count),
    )


def _stretches(intervals: Sequence[HostInterval], start_s: int, end_s: int) -> list[Stretch]:
    """Return the conditions of one host, without a gap, each as long as it was."""
    edges = {start_s, end_s}
    for interval in intervals:
        edges |= {interval.from_s, end_s if interval.to_s is None else interval.to_s}
    found: list[Stretch] = []
    for from_s, to_s in pairwise(sorted(edge for edge in edges if start_s <= edge <= end_s)):
        states = {interval.state for interval in intervals if _covers(interval, from_s)}
        condition, planned = next((_CONDITIONS[state] for state in _RANKED if state in states), _ABSENT)
        if found and (found[-1].condition, found[-1].planned) == (condition, planned):
            found[-1] = found[-1]._replace(to_s=to_s)
        else:
            found.append(Stretch(from_s, to_s, condition, planned))
    return found


def _covers(interval: HostInterval, at_s: int) -> bool:
    return interval.from_s <= at_s and (interval.to_s is None or interval.to_s > at_s)


def _gpus(intervals: Sequence[HostInterval], at_s: int, *, only_up: bool = False) -> int:
    return sum(
        interval.gpus
        for interval in intervals
        if _covers(interval, at_s) and (not only_up or _CONDITIONS[interval.state] == _UP)
    )


def _outages(
    stretches: Sequence[Stretch], busy: Sequence[int], end_s: int
) -> tuple[list[Outage], list[Outage]]:
    """Return what took a host down at once, and what it was to be emptied for first."""
    failed: list[Outage] = []
    wanted: list[Outage] = []
    place = 0
    while place < len(stretches):
        first = stretches[place]
        place += 1
        if first.condition is HostCondition.HEALTHY:
            continue
        down_from_s, down_to_s = first.from_s, first.to_s
        broke_s = first.from_s if first.condition is HostCondition.DOWN and not first.planned else None
        while place < len(stretches) and stretches[place].condition is HostCondition.DOWN:
            later = stretches[place]
            if first.condition is HostCondition.DRAINING and down_to_s == first.to_s:
                down_from_s = later.from_s
                broke_s = None if later.planned else later.from_s
            down_to_s = later.to_s
            place += 1
        lasts_s = down_to_s - down_from_s
        if down_to_s == end_s:
            lasts_s += end_s  # it stays down, whenever it was empty
        elif first.condition is HostCondition.DRAINING and down_to_s == first.to_s:
            # It came back without being told down: it was mended while nothing ran there.
            within = [at_s for at_s in busy if first.from_s < at_s <= first.to_s]
            lasts_s = first.to_s - max(within, default=first.from_s)
        if broke_s is None or first.condition is HostCondition.DRAINING:
            wanted.append(Outage(first.from_s, max(lasts_s, 1)))
        if broke_s is not None:
            failed.append(Outage(broke_s, lasts_s))
    return failed, wanted


__all__ = ["Installed", "Stretch", "installed"]
