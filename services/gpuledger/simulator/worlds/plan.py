"""Reservations of several waiting jobs, and who fits beside them for how long."""

from bisect import bisect_left
from collections.abc import Iterable

from gpuledger.policy.placement import Placement, Room
from gpuledger.simulator.jobs import Job
from gpuledger.simulator.worlds.floor import Floor
from gpuledger.simulator.worlds.releases import Opening, Releases, opening


class Plan:
    """What is promised from now on.

    Each reservation takes its GPUs from its instant on for good as far as later ones are concerned: they may come later
    than they had to, and never in the way of an earlier one.

    Args:
        floor: What is free; whoever starts is taken from it before the plan is told.
        releases: When runs end at the latest.
    """

    def __init__(self, floor: Floor, releases: Releases) -> None:
        self._floor = floor
        self._releases = releases
        self._promised: dict[str, int] = {}
        self._openings: list[Opening] = []  # by instant
        self._rooms: list[Room] = [floor.room]  # beside the first so many of them

    def __len__(self) -> int:
        """Return how many reservations there are."""
        return len(self._openings)

    def fit(self, job: Job, end_s: int) -> Placement | None:
        """Return where somebody fits now who is in nobody's way, or None.

        Args:
            job: Who.
            end_s: When it ends at the latest.
        """
        return self._rooms[self._before(end_s)].fit(job.gpus_milli, job.gpu_model)

    def take(self, placement: Placement, end_s: int) -> None:
        """Take note that somebody who fits starts."""
        for found in self._openings[: self._before(end_s)]:
            for host, milli in placement.items():
                if host in found.spare:
                    found.spare[host] -= milli
        self._match(placement, 0)

    def reserve(self, job: Job, now_s: int) -> None:
        """Promise somebody the earliest room there is, if there is any."""
        found = opening(self._floor, self._releases, job, now_s, self._promised)
        if found is None:
            return
        for host, milli in found.placement.items():
            self._promised[host] = self._promised.get(host, 0) + milli
        place = self._before(found.at_s + 1)
        self._openings.insert(place, found)
        self._rooms.insert(place + 1, self._rooms[place].copy())
        self._match(found.spare, place)

    def _before(self, at_s: int) -> int:
        """Return how many reservations begin before an instant."""
        return bisect_left(self._openings, at_s, key=lambda found: found.at_s)

    def _match(self, hosts: Iterable[str], place: int) -> None:
        """Say anew what is free on some hosts beside the reservations from a place on and those before."""
        for host in hosts:
            milli = self._floor.free.get(host, 0)
            for index, found in enumerate(self._openings):
                milli = min(milli, found.spare.get(host, milli))
                if index >= place:
                    self._rooms[index + 1].set_free(host, milli)
