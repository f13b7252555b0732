"""Where the pods of a run of Kueue are: an admission without a topology says how many GPUs, and not on which hosts."""

from dataclasses import dataclass, field
from typing import NamedTuple

from gpuledger.sources.kubernetes.admissions import uneven


class Seat(NamedTuple):
    """A pod on a host.

    Args:
        host: Where it is.
        gpus_milli: What it holds there.
        since_s: When it was bound.
    """

    host: str
    gpus_milli: int
    since_s: int


class Layout(NamedTuple):
    """Where all GPUs of a run are.

    Args:
        hosts: The hosts.
        host_gpus_milli: What each of them gives, where they do not all give as much.
        since_s: Since when.
    """

    hosts: list[str]
    host_gpus_milli: dict[str, int] | None
    since_s: int


@dataclass(slots=True)
class Seats:
    """The pods of one run, or of its part on one GPU model."""

    _taken: dict[str, Seat] = field(default_factory=dict)
    _told: tuple[list[str], dict[str, int] | None] | None = None

    def take(self, uid: str, seat: Seat) -> None:
        """Note where a pod is."""
        if seat.host and seat.gpus_milli:
            self._taken[uid] = seat

    def leave(self, uid: str) -> None:
        """Note that a pod holds nothing any more."""
        self._taken.pop(uid, None)

    def forget(self) -> None:
        """Note that the run was told to be on hosts that nobody knows."""
        self._told = None

    def layout(self, gpus_milli: int, since_s: int) -> Layout | None:
        """Return where the run is, if that is news; None while its pods do not add up to it.

        Args:
            gpus_milli: What the run holds.
            since_s: Since when it holds that.
        """
        held = sum(seat.gpus_milli for seat in self._taken.values())
        if not held or held != gpus_milli:
            return None
        each = [{seat.host: seat.gpus_milli} for seat in self._taken.values()]
        hosts, spread = sorted({seat.host for seat in self._taken.values()}), uneven(each)
        if (hosts, spread) == self._told:
            return None
        self._told = hosts, spread
        return Layout(hosts, spread, max(since_s, *(seat.since_s for seat in self._taken.values())))
