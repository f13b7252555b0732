"""Which hosts a gang gets: it starts whole or not at all, on as few hosts as it can.

A gang that one host can hold starts on one host: on the one that it fills best, so that large gaps stay whole. A
larger gang takes hosts that are wholly free and puts its rest on one more. All its hosts have one GPU model and one
size. What fractions leave free on a host is taken to lie together: whoever hands out parts of GPUs fills one first.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.apportion import apportion
from gpuledger.kernel.errors import Refused

Placement = Mapping[str, int]
"""Milli-GPU by host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostState:
    """A host that can run something.

    Args:
        host: Its name.
        gpus_milli: Healthy milli-GPU that are installed in it.
        gpu_model: Their model.
        draining: Whether it is being emptied: it takes no new run.
    """

    host: str
    gpus_milli: int
    gpu_model: str
    draining: bool = False

    def __post_init__(self) -> None:
        """Refuse a host without GPUs."""
        if self.gpus_milli <= 0:
            raise Refused(
                f"host {self.host!r} has {self.gpus_milli} milli-GPU", hint="leave out hosts without GPUs"
            )


class Room:
    """The free GPUs of some hosts, as runs take them and give them back.

    What runs hold on hosts that are not listed (down, or being emptied) is ignored. Where two runs claim the same
    GPUs, a host has less than nothing free, and nothing fits there.

    Args:
        hosts: Each once; draining ones have no room.
        taken: What runs hold.

    Raises:
        Refused: When a host is listed twice.
    """

    def __init__(self, hosts: Iterable[HostState], taken: Iterable[Placement] = ()) -> None:
        self._hosts: dict[str, HostState] = {}
        for host in sorted(hosts, key=lambda host: host.host):
            if host.host in self._hosts:
                raise Refused(f"host {host.host!r} is listed twice")
            self._hosts[host.host] = host
        self._hosts = {name: host for name, host in self._hosts.items() if not host.draining}
        self._kind = {name: (host.gpu_model, host.gpus_milli) for name, host in self._hosts.items()}
        free = {name: host.gpus_milli for name, host in self._hosts.items()}
        for placement in taken:
            for host_name, milli in placement.items():
                if host_name in free:
                    free[host_name] -= milli
        self._free: dict[str, int] = {}
        self._shelves: dict[tuple[str, int], _Shelf] = {}
        self.set_all(free)

    @property
    def free_milli(self) -> int:
        """Everything that is free."""
        return sum(max(milli, 0) for milli in self._free.values())

    def with_free(self, free: Mapping[str, int]) -> "Room":
        """Return a room of its own with the same hosts and other GPUs free."""
        room = copy(self)
        room.set_all(free)
        return room

    def copy(self) -> "Room":
        """Return a room of its own with the same GPUs free."""
        room = copy(self)
        room.begin()
        return room

    def begin(self) -> None:
        """Take what changes for its own."""
        self._free = dict(self._free)
        self._shelves = {kind: shelf.copy() for kind, shelf in self._shelves.items()}

    def fit(self, gpus_milli: int, gpu_model: str | None = None) -> Placement | None:
        """Return where a gang may start now, or None.

        Args:
            gpus_milli: What it asks for.
            gpu_model: The model it insists on; None takes any, the first by name that has room.
        """
        for (model, size), shelf in self._shelves.items():
            if gpu_model in (None, model) and (placement := shelf.fit(gpus_milli, size)):
                return placement
        return None

    def would_fit(self, free: Mapping[str, int], gpus_milli: int, gpu_model: str | None = None) -> bool:
        """Say whether a gang would have room if some hosts had other GPUs free."""
        kinds: defaultdict[tuple[str, int], dict[int, int]] = defaultdict(dict)
        for host, milli in free.items():
            at = kinds[self._kind[host]]
            at[milli] = at.get(milli, 0) + 1
            at[self._free[host]] = at.get(self._free[host], 0) - 1
        nothing: dict[int, int] = {}
        return any(
            shelf.would_fit(kinds.get((model, size), nothing), gpus_milli, size)
            for (model, size), shelf in self._shelves.items()
            if gpu_model in (None, model)
        )

    def emptiest(self, gpus_milli: int, gpu_model: str | None = None) -> Placement:
        """Return the hosts that come closest to having room for a gang: what each is to give, free or not.

        Of hosts of one model and size those with the most free GPUs, the first by name of equals; of several kinds of
        hosts the one where the gang lacks least. Nothing where no hosts would do.

        Args:
            gpus_milli: What it asks for.
            gpu_model: The model it insists on; None takes any.
        """
        found = [
            fit
            for (model, size), shelf in self._shelves.items()
            if gpu_model in (None, model) and (fit := shelf.emptiest(gpus_milli, size))
        ]
        return min(found, key=lambda fit: fit.lacking_milli).placement if found else {}

    def scatter(self, gpus_milli: int) -> Placement:
        """Return GPUs for what fits nowhere: what is free, host by host, and the rest on the first host again."""
        placement: dict[str, int] = {}
        for host in sorted(self._hosts):
            taken_milli = min(max(self._free[host], 0), gpus_milli)
            if taken_milli:
                placement[host] = taken_milli
                gpus_milli -= taken_milli
        if gpus_milli and self._hosts:
            first = min(self._hosts)
            placement[first] = placement.get(first, 0) + gpus_milli
        return placement

    def take(self, placement: Placement) -> None:
        """Mark GPUs as occupied."""
        self._move(placement, sign=-1)

    def give(self, placement: Placement) -> None:
        """Mark GPUs as free again.

        Raises:
            Refused: When a host would have more free than it has.
        """
        self._move(placement, sign=1)

    def set_all(self, free: Mapping[str, int]) -> None:
        """Say anew how much of each host is free."""
        kinds: defaultdict[tuple[str, int], defaultdict[int, list[str]]]
        kinds = defaultdict(lambda: defaultdict(list))
        for name, kind in self._kind.items():  # sorted by name, as the lists of a shelf are
            kinds[kind][free[name]].append(name)
        self._free = dict(free)
        self._shelves = {kind: _Shelf(dict(hosts)) for kind, hosts in sorted(kinds.items())}

    def _move(self, placement: Placement, *, sign: int) -> None:
        for host, milli in placement.items():
            if host not in self._hosts:
                continue
            free_milli = self._free[host] + sign * milli
            if free_milli > self._hosts[host].gpus_milli:
                raise Refused(
                    f"host {host!r} of {self._hosts[host].gpus_milli} milli-GPU would have {free_milli} free",
                    hint="only what was taken can be given back, once",
                )
            self.set_free(host, free_milli)

    def set_free(self, host: str, free_milli: int) -> None:
        """Say anew how much of a host is free; below 0 where more is claimed than there is."""
        if free_milli != self._free[host]:
            shelf = self._shelves[self._kind[host]]
            shelf.drop(host, self._free[host])
            self._free[host] = free_milli
            shelf.put(host, free_milli)


class _Nearly(NamedTuple):
    """Hosts that may have too little room for a gang, and how much they lack."""

    lacking_milli: int
    placement: Placement


class _Shelf:
    """Hosts of one model and size, sorted by what is free on them."""

    def __init__(self, hosts: dict[int, list[str]]) -> None:
        self._hosts = hosts
        self._amounts = sorted(hosts)

    def copy(self) -> "_Shelf":
        """Return a shelf of its own with the same hosts."""
        return _Shelf({amount: list(hosts) for amount, hosts in self._hosts.items()})

    def put(self, host: str, free_milli: int) -> None:
        """Put a host where its free GPUs are looked for."""
        if free_milli not in self._hosts:
            insort(self._amounts, free_milli)
            self._hosts[free_milli] = []
        insort(self._hosts[free_milli], host)

    def drop(self, host: str, free_milli: int) -> None:
        """Take a host from where it was put."""
        hosts = self._hosts[free_milli]
        del hosts[bisect_left(hosts, host)]
        if not hosts:
            del self._hosts[free_milli]
            del self._amounts[bisect_left(self._amounts, free_milli)]

    def fit(self, gpus_milli: int, size_milli: int) -> Placement | None:
        """Return hosts for a gang, the wholly free ones first, or None."""
        wholes, rest = divmod(gpus_milli, size_milli)
        empty = self._hosts.get(size_milli, [])
        if len(empty) < wholes:
            return None
        placement = dict.fromkeys(empty[:wholes], size_milli)
        if rest:
            best = next((host for host in self._with_free(rest) if host not in placement), None)
            if best is None:
                return None
            placement[best] = rest
        return placement

    def emptiest(self, gpus_milli: int, size_milli: int) -> "_Nearly | None":
        """Return where a gang lacks least, or None where there are too few hosts."""
        parts = [size_milli] * (gpus_milli // size_milli)
        parts += [rest] if (rest := gpus_milli % size_milli) else []
        by_room = [(amount, host) for amount in reversed(self._amounts) for host in self._hosts[amount]]
        if len(by_room) < len(parts):
            return None
        taken = list(zip(by_room, parts, strict=False))
        lacking_milli = sum(max(part - max(amount, 0), 0) for (amount, _), part in taken)
        return _Nearly(lacking_milli, {host: part for (_, host), part in taken})

    def would_fit(self, more: Mapping[int, int], gpus_milli: int, size_milli: int) -> bool:
        """Say whether there would be hosts for a gang with so many more hosts that have so much free."""
        wholes, rest = divmod(gpus_milli, size_milli)
        empty = len(self._hosts.get(size_milli, ())) + more.get(size_milli, 0)
        if empty < wholes or not rest:
            return empty >= wholes
        enough = sum(count for milli, count in more.items() if milli >= rest)
        enough += sum(len(self._hosts[milli]) for milli in self._amounts if milli >= rest)
        return enough > wholes

    def _with_free(self, milli: int) -> Iterator[str]:
        """Yield the hosts that have so much free, the fullest first."""
        for amount in self._amounts[bisect_left(self._amounts, milli) :]:
            yield from self._hosts[amount]


def model_of(models: Iterable[str]) -> Callable[[str | None], str | None]:
    """Return what gives a GPU model in the spelling of the hosts, where one of theirs differs by case only."""
    spelling = {model.casefold(): model for model in models}
    return lambda model: model and spelling.get(model.casefold(), model)


def split(gpus_milli: int, sizes: Mapping[str, int]) -> Placement:
    """Say what a run holds on each of its hosts, of which only the total is known.

    Evenly where that fits, else in proportion to the hosts' sizes. Whole GPUs stay whole.

    Args:
        gpus_milli: What the run holds.
        sizes: Milli-GPU of each host; 0 where nobody knows.
    """
    unit = GPU_MILLI if gpus_milli % GPU_MILLI == 0 else 1
    names = sorted(sizes)
    parts = apportion(gpus_milli // unit, [1] * len(names))
    if any(0 < sizes[name] < part * unit for name, part in zip(names, parts, strict=True)):
        parts = apportion(gpus_milli // unit, [sizes[name] for name in names])
    return {name: part * unit for name, part in zip(names, parts, strict=True) if part}
