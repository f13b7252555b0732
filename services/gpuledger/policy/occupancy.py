"""Which GPUs of which hosts the runs hold, before a cycle decides anything. Pure.

It is made from a state, or brought up to date from one state to the next by what changed between the two: a cycle costs
what came and went since the one before, not what is there.
"""

from collections.abc import Iterable
from copy import copy
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

from gpuledger.policy.placement import HostState, Placement, Room
from gpuledger.policy.places import place_runs
from gpuledger.policy.state import ClusterState, RunId, RunningRun


class Occupant(NamedTuple):
    """GPUs of a host that a run holds, and until when other accounts' work cannot take them."""

    gpus_milli: int
    safe_until_s: int


class Occupancy:
    """The hosts, and who is where.

    Args:
        state: The cluster. Without hosts it is one host, of any model.
        quantum_s: How long a start of funded work is safe from other accounts' work.

    Attributes:
        knows_models: Whether anybody said which hosts there are.
        sizes: Milli-GPU of the hosts that take new runs.
        models: The GPU model of every host.
        largest_milli: Milli-GPU of the largest host, draining ones included; 1 without any.
        smallest_milli: Milli-GPU of the smallest host that takes new runs; 1 without any.
        draining: The hosts that are being emptied.
        empty: The hosts with nothing on them.
        placements: Where every run is.
        parts: What it holds of hosts that take new runs.
        free: What nobody occupies, by host; below 0 where runs claim more than there is.
        room: The same, to look for room in.
        occupants: Who is on a host.
    """

    def __init__(self, state: ClusterState, quantum_s: int) -> None:
        self._told = state.hosts
        self._hosts = state.hosts or _one_host(state)
        self._quantum_s = quantum_s
        self._at_s = state.at_s
        self.knows_models = bool(state.hosts)
        self.sizes = {host.host: host.gpus_milli for host in self._hosts if not host.draining}
        self.models = {host.host: host.gpu_model for host in self._hosts}
        self.largest_milli = max([host.gpus_milli for host in self._hosts], default=1)
        self.smallest_milli = min(self.sizes.values(), default=1)
        self.draining = frozenset([host.host for host in self._hosts if host.draining])
        self.empty = Room(self._hosts)
        self._possible: dict[tuple[int, str | None], bool] = {}
        self._all_said = bool(state.hosts) and all(run.placement for run in state.running)
        self.placements: dict[RunId, Placement] = (
            place_runs(state.running, self._hosts)
            if state.hosts
            else {run.id: {state.cluster: run.gpus_milli} for run in state.running}
        )
        self._runs = state.running
        self.parts: dict[RunId, list[tuple[str, int]]] = {}
        self.free = dict(self.sizes)
        self.occupants: dict[str, list[Occupant]] = {host: [] for host in self.sizes}
        self._most = dict(self.sizes)
        self._protected: dict[RunId, RunningRun] = {}
        self._ends: list[tuple[int, int, RunningRun]] = []
        self._counter = count()
        for run in state.running:
            self._take(run)
        self.room = self.empty.with_free(self.free)

    def copy(self) -> "Occupancy":
        """Return the same, to be brought up to date on its own."""
        other = copy(self)
        other._begin()  # noqa: SLF001 - one of its own
        return other

    def _begin(self) -> None:
        """Take what changes for its own."""
        self.placements, self.parts, self.free = dict(self.placements), dict(self.parts), dict(self.free)
        self.occupants = {host: list(there) for host, there in self.occupants.items()}
        self.room = self.room.copy()
        self._most, self._protected, self._ends = dict(self._most), dict(self._protected), list(self._ends)

    def is_possible(self, gpus_milli: int, gpu_model: str | None) -> bool:
        """Say whether a gang fits when nothing runs."""
        asked = gpus_milli, gpu_model if self.knows_models else None
        if asked not in self._possible:
            self._possible[asked] = self.empty.fit(*asked) is not None
        return self._possible[asked]

    def usable(self, placement: Placement) -> list[tuple[str, int]]:
        """Return what a placement holds of hosts that take new runs."""
        return [(host, milli) for host, milli in placement.items() if host in self.sizes]

    def most_at(self, at_s: int) -> dict[str, int]:
        """Return what every host has beside the runs that are protected at an instant, as a value of one's own."""
        if at_s == self._at_s:
            return dict(self._most)
        most = dict(self.sizes)
        for run in self._runs:
            if not run.is_preemptible(at_s):
                for host, milli in self.parts[run.id]:
                    most[host] -= milli
        return most

    def follow(self, state: ClusterState, gone: Iterable[RunningRun], come: Iterable[RunningRun]) -> bool:
        """Bring it up to date, whatever was made of it before being over; say whether that could be done.

        It cannot be done for other hosts, where nobody said which hosts somebody holds, nor back in time.

        Args:
            state: The cluster as it is now.
            gone: The runs that are there no more, or not as they were.
            come: The runs that are there from now on.
        """
        are_ours = state.hosts is self._told or state.hosts == self._told
        if not (
            are_ours and self._all_said and state.at_s >= self._at_s and all(run.placement for run in come)
        ):
            return False
        for run in gone:
            self._give_back(run)
        self._told, self._runs, self._at_s = state.hosts, state.running, state.at_s
        while self._ends and self._ends[0][0] <= self._at_s:
            _, _, run = heappop(self._ends)
            if self._protected.get(run.id) is run:
                self._protect(run, -1)
        for run in come:
            self.placements[run.id] = run.placement
            self._take(run)
            for host, _ in self.parts[run.id]:
                self.room.set_free(host, self.free[host])
        return True

    def _take(self, run: RunningRun) -> None:
        """Count what a run holds that is there from now on."""
        self.parts[run.id] = self.usable(self.placements[run.id])
        safe_until_s = run.safe_until_s(self._quantum_s)
        for host, milli in self.parts[run.id]:
            self.free[host] -= milli
            self.occupants[host].append(Occupant(milli, safe_until_s))
        if not run.is_preemptible(self._at_s):
            self._protect(run, 1)
            heappush(self._ends, (run.protected_until_s, next(self._counter), run))

    def _give_back(self, run: RunningRun) -> None:
        """Count no longer what a run held."""
        if run.id in self._protected:
            self._protect(run, -1)
        del self.placements[run.id]
        for host, milli in self.parts.pop(run.id):
            self.free[host] += milli
            self.occupants[host].remove(Occupant(milli, run.safe_until_s(self._quantum_s)))
            self.room.set_free(host, self.free[host])

    def _protect(self, run: RunningRun, sign: int) -> None:
        """Count a run as protected, or no longer."""
        if sign > 0:
            self._protected[run.id] = run
        else:
            del self._protected[run.id]
        for host, milli in self.parts[run.id]:
            self._most[host] -= sign * milli


def _one_host(state: ClusterState) -> tuple[HostState, ...]:
    if not state.healthy_milli:
        return ()
    return (HostState(host=state.cluster, gpus_milli=state.healthy_milli, gpu_model=""),)
