"""GPUs that are kept for single waiting jobs: where anybody else fits, and whom to send away so that one has room."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gpuledger.policy.placement import Placement
from gpuledger.simulator.worlds.floor import Floor


class Keeping:
    """A floor of which some GPUs are kept.

    Args:
        floor: The hosts.

    Attributes:
        room: Where those fit for whom nothing is kept.
        free: What is free for them, by host; below 0 where what is kept is still to become free.
        kept: What is kept, by job.
        leaving: What becomes free as runs leave that were told to, by host.
    """

    def __init__(self, floor: Floor) -> None:
        self._floor = floor
        self.room = floor.room.copy()
        self.free = dict(floor.free)
        self.kept: dict[str, Placement] = {}
        self.leaving: Counter[str] = Counter()
        self._sums: Counter[str] = Counter()

    def keep(self, job: str, placement: Placement) -> None:
        """Keep GPUs for a job that has none kept."""
        self.kept[job] = placement
        self._sums.update(placement)
        self.match(placement)

    def release(self, job: str) -> None:
        """Keep nothing for a job any more, if anything was."""
        placement = self.kept.pop(job, {})
        self._sums.subtract(placement)
        self.match(placement)

    def takes_runs(self, host: str) -> bool:
        """Say whether a host takes new runs."""
        return host in self._floor.free

    def is_ready(self, job: str) -> bool:
        """Say whether all that is kept for a job is free."""
        free = self._floor.free
        return all(free.get(host, 0) >= milli for host, milli in self.kept[job].items())

    def match(self, hosts: Iterable[str]) -> None:
        """Say anew what is free on some hosts."""
        for host in hosts:
            self.free[host] = self._floor.free.get(host, 0) - self._sums[host]
            self.room.set_free(host, self.free[host])


class Claim(NamedTuple):
    """How a gang gets room.

    Args:
        placement: Where.
        victims: Who has to leave for it.
    """

    placement: Placement
    victims: Sequence[str]


def claim(
    keeping: Keeping, gpus_milli: int, gpu_model: str | None, runs: Sequence[tuple[str, Placement]]
) -> Claim | None:
    """Return how a gang gets room when some runs leave; None when it has none even then.

    Nobody has to leave without whom it has room as well; who was told to leave already is taken to be gone.

    Args:
        keeping: What is free and becomes free; the gang has no room yet.
        gpus_milli: What it asks for.
        gpu_model: The model it insists on, if any.
        runs: Who may be sent away, and where they are; the first to go first.
    """
    soon = {
        host: milli + keeping.leaving[host] if keeping.takes_runs(host) else milli
        for host, milli in keeping.free.items()
    }
    then = dict(soon)
    for _, placement in runs:
        for host, milli in placement.items():
            if keeping.takes_runs(host):
                then[host] += milli
    found = keeping.room.with_free(then).fit(gpus_milli, gpu_model)
    if found is None:
        return None
    return Claim(found, _victims({host: milli - soon[host] for host, milli in found.items()}, runs))


def _victims(short: Mapping[str, int], runs: Sequence[tuple[str, Placement]]) -> list[str]:
    """Return whose leaving frees what is short on some hosts; none of them could stay."""
    short = {host: milli for host, milli in short.items() if milli > 0}
    chosen: dict[str, Placement] = {}
    for job, placement in runs:
        if any(short.get(host, 0) > 0 for host in placement):
            chosen[job] = placement
            for host in placement.keys() & short.keys():
                short[host] -= placement[host]
    for job, placement in list(chosen.items()):
        if all(short[host] + milli <= 0 for host, milli in placement.items() if host in short):
            del chosen[job]
            for host in placement.keys() & short.keys():
                short[host] += placement[host]
    return list(chosen)
