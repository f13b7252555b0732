"""What is free, from fact to fact, is what the engine says."""

from tests.simulating import T0, Scripted, job, scenario

from gpuledger.simulator.engine import simulate
from gpuledger.simulator.facts import Fact, Started
from gpuledger.simulator.scenario import FaultModel, HostSpec
from gpuledger.simulator.worlds.floor import Floor
from gpuledger.simulator.worlds.protocol import Cluster, Host, Orders, Start

HOSTS = (
    HostSpec(host="b", gpus_milli=8000, gpu_model="h100"),
    HostSpec(host="a", gpus_milli=8000, gpu_model="h100"),
    HostSpec(host="c", gpus_milli=4000, gpu_model="a100"),
)


def test_hosts_by_kind() -> None:
    floor = Floor(HOSTS)
    assert floor.kinds == {("h100", 8000): ["a", "b"], ("a100", 4000): ["c"]}
    assert floor.free == {"a": 8000, "b": 8000, "c": 4000}


class Looking(Scripted):
    """A world that compares its floor with the cluster whenever it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.floor = Floor(HOSTS)
        self.looked: list[tuple[int, list[str]]] = []
        self.free: list[dict[str, int]] = []

    def told(self, fact: Fact) -> None:
        self.floor.told(fact)

    def decide(self, cluster: Cluster) -> Orders:
        self.looked.append((cluster.at_s - T0, self.floor.look(cluster)))
        self.free.append(dict(self.floor.free))
        assert self.floor.free == {
            name: host.free_milli for name, host in cluster.hosts.items() if host.condition == "healthy"
        }
        assert self.floor.room.free_milli == sum(self.floor.free.values())
        starts = []
        for name, waiting in cluster.waiting.items():
            placement = self.floor.room.fit(waiting.job.gpus_milli)
            if placement is not None:
                self.floor.take(name, placement)
                starts.append(Start(job=name, placement=placement))
        return Orders(starts=starts)


def test_it_follows_starts_ends_and_hosts() -> None:
    faults = FaultModel(mtbf_s=4_000, repair_s=900, drain_mtbf_s=5_000, drain_repair_s=600)
    jobs = [job(f"j{n}", 1 + n % 5, 900 + 7 * n, at_s=100 * n) for n in range(300)]
    world = Looking()
    list(simulate(scenario(jobs, specs=HOSTS, faults=faults), world))
    assert {host for _, hosts in world.looked for host in hosts} == {"a", "b", "c"}
    assert any(len(free) < 3 for free in world.free)


def test_it_looks_at_what_changed_alone() -> None:
    floor = Floor(HOSTS)
    floor.told(Started(at_s=T0, job="j", run=1, placement={"a": 2000}, klass="allocated"))
    hosts = {
        spec.host: Host(host=spec.host, gpus_milli=8000, gpu_model="h100", free_milli=6000) for spec in HOSTS
    }
    cluster = Cluster(cluster="c", at_s=T0, hosts=hosts)
    assert floor.look(cluster) == ["a"]
    assert floor.free == {"a": 6000, "b": 8000, "c": 4000}
    assert floor.look(cluster) == []
