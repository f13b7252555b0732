"""What is free on the hosts that take runs, kept from fact to fact: worlds that place runs share it."""

from collections.abc import Collection

from gpuledger.policy.placement import HostState, Placement, Room
from gpuledger.simulator.facts import Fact, HostChanged, HostCondition, Left, Started
from gpuledger.simulator.scenario import HostSpec
from gpuledger.simulator.worlds.protocol import Cluster

HostKind = tuple[str, int]
"""The model and the size of a host."""

Shape = tuple[int, str | None]
"""What decides where a job fits: its GPUs, and the model it insists on."""


class Floor:
    """The hosts as they stand.

    Args:
        hosts: All that the cluster has.

    Attributes:
        room: Where gangs fit now.
        free: What is free, of hosts that take runs; others are not in it.
        kinds: Hosts by kind, by name.
        placements: Where the runs are, by job.
    """

    def __init__(self, hosts: Collection[HostSpec]) -> None:
        self.room = Room(
            HostState(host=host.host, gpus_milli=host.gpus_milli, gpu_model=host.gpu_model) for host in hosts
        )
        self.free: dict[str, int] = {}
        self.kinds: dict[HostKind, list[str]] = {}
        self.placements: dict[str, Placement] = {}
        for host in sorted(hosts, key=lambda host: host.host):
            self.kinds.setdefault((host.gpu_model, host.gpus_milli), []).append(host.host)
            self.free[host.host] = host.gpus_milli
        self._changed: dict[str, None] = {}

    def told(self, fact: Fact) -> None:
        """Take note of what happened."""
        match fact:
            case Started():
                self.placements[fact.job] = fact.placement
                self._changed.update(dict.fromkeys(fact.placement))
            case Left():
                self._changed.update(dict.fromkeys(self.placements.pop(fact.job)))
            case HostChanged():
                self._changed[fact.host] = None
            case _:
                pass

    def take(self, job: str, placement: Placement) -> None:
        """Take note of a start that is being ordered."""
        self.placements[job] = placement
        for host, milli in placement.items():
            self.free[host] -= milli
            self.room.set_free(host, self.free[host])

    def look(self, cluster: Cluster) -> list[str]:
        """Look at the hosts where something happened, and return them."""
        changed = list(self._changed)
        self._changed.clear()
        for name in changed:
            host = cluster.hosts[name]
            if host.condition is HostCondition.HEALTHY:
                self.free[name] = host.free_milli
                self.room.set_free(name, host.free_milli)
            else:
                self.free.pop(name, None)
                self.room.set_free(name, 0)
        return changed
