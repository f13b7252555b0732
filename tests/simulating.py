"""Small clusters, jobs and worlds to simulate: what the tests of the simulator share."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from gpuledger.kernel.knobs import PolicyConfig
from gpuledger.policy.state import WorkClass
from gpuledger.simulator.facts import (
    Cancelled,
    Fact,
    HostChanged,
    Left,
    Reserved,
    Started,
    Submitted,
    Told,
    UserAsked,
)
from gpuledger.simulator.faults import Outage
from gpuledger.simulator.jobs import Demand, Job
from gpuledger.simulator.scenario import AccountSpec, FaultModel, HostSpec, Scenario
from gpuledger.simulator.worlds.protocol import Cluster, Orders, Start, Waiting

T0 = 1_800_057_600
"""A midnight: the simulations of the tests begin here."""
GRACE_S = 60


def job(name: str, gpus: float = 1, work_s: int = 100, *, at_s: int = 0, **more: Any) -> Job:  # noqa: ANN401 - what a job takes
    """Whole GPUs, and instants that count from the beginning."""
    return Job(
        job=name,
        account=more.pop("account", "org/a"),
        user=more.pop("user", "ann"),
        gpus_milli=round(gpus * 1000),
        submitted_s=T0 + at_s,
        work_s=work_s,
        minimum_runtime_s=more.pop("minimum_runtime_s", 60),
        **more,
    )


@dataclass
class Listed:
    """A demand that is a list, and what follows each job."""

    jobs: Sequence[Job]
    following: Callable[[Job, int], Iterable[Job]] = lambda _job, _at_s: ()
    over: list[tuple[str, int]] = field(default_factory=list)

    def first(self) -> Iterable[Job]:
        return self.jobs

    def after(self, job: Job, at_s: int) -> Iterable[Job]:
        self.over.append((job.job, at_s - T0))
        return self.following(job, at_s)


def scenario(
    jobs: Sequence[Job] | Demand = (),
    *,
    hosts: Sequence[float] = (8,),
    days: int = 1,
    grace_s: int = GRACE_S,
    faults: FaultModel | None = None,
    **more: Any,  # noqa: ANN401 - what a scenario takes
) -> Scenario:
    """Hosts h0, h1, ... of so many GPUs; one day without warm-up."""
    demand = Listed(jobs) if isinstance(jobs, Sequence) else jobs
    return Scenario(
        name="test",
        cluster="c",
        start_s=T0,
        days=days,
        warm_up_days=more.pop("warm_up_days", 0),
        hosts=more.pop("specs", None)
        or tuple(
            HostSpec(host=f"h{n}", gpus_milli=round(gpus * 1000), gpu_model="h100")
            for n, gpus in enumerate(hosts)
        ),
        accounts=more.pop("accounts", (AccountSpec(account="org/a", share=1),)),
        demand=lambda _seed: demand,
        faults=faults or FaultModel(),
        policy=PolicyConfig(grace_s=grace_s),
        **more,
    )


Move = Callable[[Cluster], Orders | None]


class Scripted:
    """A world that does what it is told at given instants, counted from the beginning, and writes down what it hears.

    Args:
        moves: What it does at an instant when it is asked; it wants to be asked at each.
        otherwise: What it does whenever else it is asked.
    """

    name = "scripted"

    def __init__(self, moves: dict[int, Move] | None = None, otherwise: Move = lambda _: None) -> None:
        self.moves = moves or {}
        self.otherwise = otherwise
        self.heard: list[Fact] = []
        self.asked: list[int] = []

    def told(self, fact: Fact) -> None:
        self.heard.append(fact)

    def decide(self, cluster: Cluster) -> Orders:
        at_s = cluster.at_s - T0
        self.asked.append(at_s)
        orders = self.moves.pop(at_s, self.otherwise)(cluster) or Orders()
        later = [due for due in self.moves if due > at_s]
        if orders.wake_s is None and later:
            return Orders(
                starts=orders.starts,
                leave=orders.leave,
                stay=orders.stay,
                asks=orders.asks,
                reserved=orders.reserved,
                wake_s=T0 + min(later),
            )
        return orders


def start(name: str, protected_s: int = 0, /, **gpus: float) -> Move:
    """Start a job on so many GPUs of hosts."""
    placement = {host: round(count_ * 1000) for host, count_ in gpus.items()}
    return lambda _: Orders(starts=[Start(job=name, placement=placement, protected_s=protected_s)])


def leave(*names: str) -> Move:
    return lambda _: Orders(leave=names)


def at_once(cluster: Cluster) -> Orders:
    """Start whatever fits, host by host, in order of arrival."""
    free = {name: host.free_milli for name, host in cluster.hosts.items() if host.condition == "healthy"}
    starts = []
    for waiting in cluster.waiting.values():
        wanted, placement = waiting.job.gpus_milli, {}
        for host, free_milli in free.items():
            part = min(free_milli, wanted - sum(placement.values()))
            if part:
                placement[host] = part
        if sum(placement.values()) == wanted:
            starts.append(Start(job=waiting.job.job, placement=placement))
            for host, milli in placement.items():
                free[host] -= milli
    return Orders(starts=starts)


def outages(*pairs: tuple[int, int]) -> list[Outage]:
    """Instants, counted from the beginning, and lengths."""
    return [Outage(T0 + at_s, lasts_s) for at_s, lasts_s in pairs]


def told(facts: Iterable[Fact]) -> list[str]:
    """Facts in one line each, with instants from the beginning and GPUs as they are asked for."""
    return [_line(fact) for fact in facts]


def _line(fact: Fact) -> str:
    at = f"{fact.at_s - T0}"
    match fact:
        case Submitted():
            return f"{at} {fact.job.job} submitted"
        case Cancelled():
            return f"{at} {fact.job} cancelled"
        case Started():
            where = " ".join(f"{host}:{milli / 1000:g}" for host, milli in fact.placement.items())
            return f"{at} {fact.job} started run {fact.run} on {where}"
        case Told():
            return f"{at} {fact.job} told to leave by {fact.leaves_s - T0}"
        case Left():
            parts = f"kept {fact.kept_s} lost {fact.lost_s} loading {fact.loading_s} idle {fact.idle_s}"
            return f"{at} {fact.job} left, {fact.why}: {parts}{', waits again' if fact.requeued else ''}"
        case HostChanged():
            return f"{at} {fact.host} {fact.condition}{', planned' if fact.planned else ''}"
        case UserAsked():
            return f"{at} {fact.host} asked for {fact.job}"
        case Reserved():
            return f"{at} reserved {dict(fact.placement)}"


class Whims:
    """A world that orders anything that can be done, by chance."""

    name = "whims"

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)

    def told(self, fact: Fact) -> None: ...

    def decide(self, cluster: Cluster) -> Orders:
        rng = self.rng
        healthy = {name: h.free_milli for name, h in cluster.hosts.items() if h.condition == "healthy"}
        starts = [order for waiting in cluster.waiting.values() if (order := self.start(waiting, healthy))]
        told = [name for name, run in cluster.running.items() if run.leaves_s is not None]
        draining = [name for name, host in cluster.hosts.items() if host.condition == "draining"]
        return Orders(
            starts=starts,
            leave=[name for name in cluster.running if name not in told and rng.random() < 0.15],
            stay=[name for name in told if rng.random() < 0.1],
            asks=[
                (host, name)
                for host in draining
                for name, run in cluster.running.items()
                if host in run.placement and rng.random() < 0.2
            ],
            reserved=self.some(healthy) if rng.random() < 0.2 else None,
            wake_s=cluster.at_s + rng.randint(1, 20) if rng.random() < 0.5 else None,
        )

    def start(self, waiting: Waiting, free: dict[str, int]) -> Start | None:
        """Take from any hosts what it asked for, and from what is free."""
        wanted, placement = waiting.job.gpus_milli, {}
        for host in self.rng.sample(sorted(free), len(free)):
            part = min(free[host], wanted - sum(placement.values()))
            if part:
                placement[host] = part
        if sum(placement.values()) < wanted or self.rng.random() < 0.3:
            return None
        for host, milli in placement.items():
            free[host] -= milli
        klass: WorkClass = "allocated" if self.rng.random() < 0.5 else "unallocated"
        return Start(
            job=waiting.job.job, placement=placement, klass=klass, protected_s=self.rng.randint(0, 9)
        )

    def some(self, free: dict[str, int]) -> dict[str, int]:
        return {host: self.rng.randint(1, milli) for host, milli in free.items() if milli}
