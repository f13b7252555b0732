"""When GPUs come back at the latest, as time limits say, and from when on a gang has room then."""

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from gpuledger.policy.placement import Placement
from gpuledger.simulator.jobs import Job
from gpuledger.simulator.worlds.floor import Floor

UNLIMITED_S = 365 * 86_400
"""What is taken for the time limit of a job that has none."""


def longest_s(job: Job) -> int:
    """Return how long a run of a job may take."""
    return UNLIMITED_S if job.time_limit_s is None else job.time_limit_s


class Releases:
    """Runs in the order in which their time limits end them."""

    def __init__(self) -> None:
        self._ends: list[tuple[int, str]] = []
        self._end_s: dict[str, int] = {}

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Yield instants and jobs, the first to end first."""
        return iter(self._ends)

    def put(self, job: str, end_s: int) -> None:
        """Say when a run ends at the latest."""
        self._end_s[job] = end_s
        insort(self._ends, (end_s, job))

    def drop(self, job: str) -> None:
        """Forget a run that ended."""
        end_s = self._end_s.pop(job)
        del self._ends[bisect_left(self._ends, (end_s, job))]


class Opening(NamedTuple):
    """Where and from when on a gang has room.

    Args:
        at_s: From when on.
        placement: Where.
        spare: What is free beside it, on its hosts, at that instant.
    """

    at_s: int
    placement: Placement
    spare: dict[str, int]


class _Watch:
    """Hosts of one kind, while they become free: whether a gang has room there."""

    def __init__(self, gpus_milli: int, size_milli: int, hosts: list[str], free: Mapping[str, int]) -> None:
        self.size_milli = size_milli
        self._hosts = hosts
        self._wholes, self._rest_milli = divmod(gpus_milli, size_milli)
        there = [free[host] for host in hosts if host in free]
        self._empty = sum(milli == size_milli for milli in there)
        self._enough = sum(milli >= self._rest_milli for milli in there)

    def count(self, before_milli: int, after_milli: int) -> None:
        """Take note that more is free on a host."""
        self._empty += before_milli < self.size_milli == after_milli
        self._enough += before_milli < self._rest_milli <= after_milli

    def has_room(self) -> bool:
        """Say whether the gang has room; its rest may not be on a host that it fills."""
        if self._empty < self._wholes:
            return False
        return not self._rest_milli or self._enough > self._wholes

    def place(self, free: Mapping[str, int]) -> Placement:
        """Return where, as a room places it: whole hosts first, then the fullest that holds the rest."""
        empty = (host for host in self._hosts if free.get(host) == self.size_milli)
        placement = {host: self.size_milli for host, _ in zip(empty, range(self._wholes), strict=False)}
        if self._rest_milli:
            _, best = min(
                (free[host], host)
                for host in self._hosts
                if host not in placement and free.get(host, -1) >= self._rest_milli
            )
            placement[best] = self._rest_milli
        return placement


def opening(
    floor: Floor,
    releases: Releases,
    job: Job,
    now_s: int,
    promised: Mapping[str, int] = MappingProxyType({}),
) -> Opening | None:
    """Return from when on a gang has room when nobody else starts; None when it never has.

    Args:
        floor: What is free now; the gang has no room yet.
        releases: When runs end at the latest.
        job: Who asks.
        now_s: Now.
        promised: What is promised to others, by host: it is not there for this one, whatever becomes free.
    """
    free = dict(floor.free)
    for host, milli in promised.items():
        if host in free:
            free[host] -= milli
    watches: dict[str, _Watch] = {}
    for (model, size_milli), hosts in floor.kinds.items():
        if job.gpu_model in (None, model):
            watch = _Watch(job.gpus_milli, size_milli, hosts, free)
            if watch.has_room():
                return _opening(watch, free, now_s)
            watches.update(dict.fromkeys(hosts, watch))
    for end_s, name in releases:
        freed = [host for host in floor.placements[name] if host in free and host in watches]
        for host in freed:
            before_milli = free[host]
            free[host] += floor.placements[name][host]
            watches[host].count(before_milli, free[host])
        for host in freed:
            if watches[host].has_room():
                return _opening(watches[host], free, max(end_s, now_s))
    return None


def _opening(watch: _Watch, free: Mapping[str, int], at_s: int) -> Opening:
    placement = watch.place(free)
    return Opening(at_s, placement, {host: free[host] - milli for host, milli in placement.items()})
