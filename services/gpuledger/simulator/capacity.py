"""In which state each GPU of a simulated cluster is: the partition of law 9, and how large a gang could start.

Each state is counted by itself, none as what the others leave: that they sum to what is installed is a result.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.errors import Corrupt
from gpuledger.policy.placement import Placement
from gpuledger.policy.state import WorkClass
from gpuledger.simulator.facts import HostChanged, HostCondition
from gpuledger.simulator.levels import Level
from gpuledger.simulator.scenario import HostSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Every installed GPU-second in exactly one state, in gpu_ms; states that no simulation knows hold nothing.

    Args:
        installed: All there is.
        allocated: A run of class allocated holds it, loading and unused time included.
        unallocated: A run of class unallocated holds it.
        overhead: Prolog, epilog, completing: a simulated GPU is handed over at once, so that there is none.
        unhealthy: Empty, on a host that is down after a fault.
        maintenance: Empty, on a host that is drained, or repaired after a drain.
        reserved: Empty, and kept for a job that waits.
        free: Empty, and anybody's.
        lost: Silent; a simulated host never is.
    """

    installed: int
    allocated: int
    unallocated: int
    overhead: int = 0
    unhealthy: int
    maintenance: int
    reserved: int
    free: int
    lost: int = 0

    @property
    def occupied(self) -> int:
        """A + N."""
        return self.allocated + self.unallocated

    @property
    def usable(self) -> int:
        """H: installed, less what is unhealthy or in maintenance, and empty."""
        return self.installed - self.unhealthy - self.maintenance

    @property
    def residual(self) -> int:
        """What is in no state, or in two; must be 0."""
        return (
            self.installed - self.lost - self.occupied - self.overhead - self.unhealthy - self.maintenance
            - self.reserved - self.free
        )  # fmt: skip


@dataclass(slots=True)
class _Host:
    spec: HostSpec
    shelf: "_Shelf"
    condition: HostCondition = HostCondition.HEALTHY
    planned: bool = False
    held: int = 0
    states: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Unhealthy, maintenance, reserved, free."""
    healthy: int = 0
    room: int = 0


class _Shelf:
    """The hosts of one model and size, by what is free on each."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.rooms: Counter[int] = Counter()

    def largest(self) -> int:
        """Return the largest gang of whole GPUs that could start: whole hosts, and its rest on one more."""
        rest = max((room for room, hosts in self.rooms.items() if hosts and room < self.size), default=0)
        return self.rooms[self.size] * self.size + rest - rest % GPU_MILLI


class Capacity:
    """The hosts, as facts change them.

    Args:
        hosts: What is installed, from the beginning to the end.
        from_s: When the window that is measured begins.
    """

    def __init__(self, hosts: Iterable[HostSpec], from_s: int) -> None:
        self._from_s = from_s
        self._shelves: dict[tuple[str, int], _Shelf] = {}
        self._hosts: dict[str, _Host] = {}
        self._kept: Placement = {}
        names = ("unhealthy", "maintenance", "reserved", "free")
        self._empty = tuple(Level(from_s) for _ in names)
        self._held = {"allocated": Level(from_s), "unallocated": Level(from_s)}
        self.healthy = Level(from_s)
        self._gang = Level(from_s)
        self._least: int | None = None
        self._touched: dict[_Shelf, None] = {}
        self._largest: dict[_Shelf, int] = {}
        for spec in hosts:
            shelf = self._shelves.setdefault((spec.gpu_model, spec.gpus_milli), _Shelf(spec.gpus_milli))
            self._hosts[spec.host] = _Host(spec, shelf)
            shelf.rooms[0] += 1
            self._refresh(from_s, spec.host)
        self.installed_milli = sum(host.spec.gpus_milli for host in self._hosts.values())

    def empty(self, host: str) -> bool:
        """Say whether no run holds anything of a host."""
        return self._hosts[host].held == 0

    def hold(self, at_s: int, placement: Placement, klass: WorkClass) -> None:
        """A run takes GPUs."""
        self._move(at_s, placement, klass, 1)

    def release(self, at_s: int, placement: Placement, klass: WorkClass) -> None:
        """A run gives its GPUs back."""
        self._move(at_s, placement, klass, -1)

    def change(self, fact: HostChanged) -> None:
        """A host is in another condition."""
        host = self._hosts[fact.host]
        host.condition, host.planned = fact.condition, fact.planned
        self._refresh(fact.at_s, fact.host)

    def reserve(self, at_s: int, placement: Placement) -> None:
        """From now on this is kept, and nothing else."""
        before, self._kept = self._kept, dict(placement)
        for name in {**before, **self._kept}:
            self._refresh(at_s, name)

    def settle(self, at_s: int) -> None:
        """All of an instant is told, and time goes on: note the largest gang that can start from then on."""
        if self._touched:
            for shelf in self._touched:
                self._largest[shelf] = shelf.largest()
            self._touched.clear()
            self._gang.move(at_s, max(self._largest.values(), default=0) - self._gang.amount)
        largest = self._gang.amount
        self._least = largest if self._least is None else min(self._least, largest)

    def take_gang(self, to_s: int) -> tuple[int, int]:
        """Return the largest startable gang since this was last asked: its integral in gpu_ms, its least milli-GPU."""
        least, self._least = self._least or 0, None
        return self._gang.take(to_s), least

    def partition(self, to_s: int) -> Partition:
        """Return the sums over the window up to an instant."""
        unhealthy, maintenance, reserved, free = (level.area(to_s) for level in self._empty)
        return Partition(
            installed=self.installed_milli * max(to_s - self._from_s, 0),
            allocated=self._held["allocated"].area(to_s),
            unallocated=self._held["unallocated"].area(to_s),
            unhealthy=unhealthy,
            maintenance=maintenance,
            reserved=reserved,
            free=free,
        )

    def _move(self, at_s: int, placement: Placement, klass: WorkClass, sign: int) -> None:
        whole = 0
        for name, milli in placement.items():
            self._hosts[name].held += sign * milli
            whole += milli
            self._refresh(at_s, name)
        self._held[klass].move(at_s, sign * whole)

    def _refresh(self, at_s: int, name: str) -> None:
        """Count a host anew."""
        host = self._hosts[name]
        room = host.spec.gpus_milli - host.held
        if not 0 <= host.held <= host.spec.gpus_milli:
            raise Corrupt(
                f"at {at_s} s runs hold {host.held} milli-GPU of host {name}, which has {host.spec.gpus_milli}",
                hint="the engine handed something over twice, or took it back twice",
            )
        startable, healthy = 0, host.held
        match host.condition:
            case HostCondition.HEALTHY:
                reserved = min(self._kept.get(name, 0), room)
                states = (0, 0, reserved, room - reserved)
                startable, healthy = room, host.spec.gpus_milli
            case HostCondition.DRAINING:
                states = (0, room, 0, 0)
            case HostCondition.DOWN:
                states = (0, room, 0, 0) if host.planned else (room, 0, 0, 0)
                healthy = host.held if host.planned else 0
        if states != host.states:
            for level, was, now in zip(self._empty, host.states, states, strict=True):
                if was != now:
                    level.move(at_s, now - was)
            host.states = states
        if healthy != host.healthy:
            self.healthy.move(at_s, healthy - host.healthy)
            host.healthy = healthy
        if startable != host.room:
            host.shelf.rooms[host.room] -= 1
            host.shelf.rooms[startable] += 1
            host.room = startable
            self._touched[host.shelf] = None


__all__ = ["Capacity", "Partition"]
