"""A cluster that does what its cycles say, and an eye on every cycle that shares no code with the policy."""

import random
import re
from collections import Counter, deque
from dataclasses import dataclass, field, replace

from tests.property.policy.keeping import is_kept_out

from gpuledger.policy.credits import Credit
from gpuledger.policy.cycle import (
    AccountState,
    ClusterState,
    Cycle,
    Decision,
    HostState,
    PendingWorkload,
    PolicyConfig,
    Reservation,
    RunningRun,
    run_cycle,
)

CONFIG = PolicyConfig(window_s=86_400, protection_cap_s=3600, quantum_s=300, notice_s=300, grace_s=60)
CREDITS = replace(CONFIG, division="credits")
CYCLE_S = 60
INTERVALS_S = (20, 60, 60, 250)
RESERVED = ": reserved at the head of the queue"
PASSED_ON = ": who had reserved its GPUs started elsewhere"
LEAVES_FOR = re.compile(r"^Leaves for (\S+) of account (\S+),")


@dataclass
class Job:
    """A workload, and the run that it has at the moment."""

    name: str
    account: str
    gpus: int
    minimum_s: int
    length_s: int
    submitted_s: int
    priority: int = 0
    model: str | None = None
    eligible_s: int = 0
    run: int = 0
    started_s: int | None = None
    klass: str = "allocated"
    hosts: dict[str, int] = field(default_factory=dict)
    leaves_s: int | None = None

    def protected_until_s(self) -> int:
        assert self.started_s is not None
        return self.started_s + min(self.minimum_s, CONFIG.protection_cap_s)

    def safe_until_s(self) -> int:
        assert self.started_s is not None
        if self.klass == "unallocated":
            return self.started_s
        return max(self.protected_until_s(), self.started_s + CONFIG.quantum_s)


class World:
    """Hosts, shares and jobs; time goes on one cycle at a time."""

    def __init__(self, hosts: list[HostState], shares: dict[str, int], at_s: int = 1_000_000) -> None:
        self.config = CONFIG
        self.cycle_s = CYCLE_S
        self.hosts = hosts
        self.shares = shares
        self.at_s = at_s
        self.jobs: dict[str, Job] = {}
        self.entitled: dict[str, int] = {}
        """What accounts were entitled to over the window, where their shares were others; else by those of now."""
        self.used: Counter[str] = Counter()
        """Use of the window, by account; with ``!`` what ran unallocated."""
        self.total: Counter[str] = Counter()
        """The same since the world began, forgotten never."""
        self.bursts: deque[tuple[int, str, int]] = deque()
        self.reservations: tuple[Reservation, ...] = ()
        self.credits: dict[str, Credit] = {}
        self.decided_s = at_s
        self.bound_since: dict[str, int] = {}
        self.promised_since: dict[str, int] = {}
        self.taken: list[str] = []
        """Funded runs that left for the work of other accounts."""
        self.told_to_leave: set[tuple[str, str | None]] = set()
        """The runs that the last cycle told to leave."""
        self.submitted = 0

    @property
    def healthy_milli(self) -> int:
        return sum(host.gpus_milli for host in self.hosts if not host.draining)

    def running(self) -> list[Job]:
        return [job for job in self.jobs.values() if job.started_s is not None]

    def waiting(self) -> list[Job]:
        return [job for job in self.jobs.values() if job.started_s is None]

    def submit(self, job: Job) -> None:
        self.submitted += 1
        self.jobs[job.name] = job

    def state(self) -> ClusterState:
        lasted_s = min(self.at_s - self.decided_s, CONFIG.quantum_s)
        held: Counter[str] = Counter()
        for job in self.running():
            if job.klass == "allocated":
                held[job.account] += job.gpus * 1000 * max(job.protected_until_s() - self.at_s, 0)
        demand: Counter[str] = Counter()
        for job in self.jobs.values():
            demand[job.account] += job.gpus * 1000 if job.minimum_s else 0
        return ClusterState(
            cluster="c",
            at_s=self.at_s,
            healthy_milli=self.healthy_milli,
            capacity_window_gpu_ms=self.healthy_milli * CONFIG.window_s,
            accounts=tuple(
                AccountState(
                    account=path,
                    share=share,
                    used_gpu_ms=self.used[path] + held[path],
                    held_gpu_ms=held[path],
                    entitled_gpu_ms=self.entitled.get(path),
                    demand_milli=demand[path],
                    unallocated_gpu_ms=self.used[path + "!"],
                )
                for path, share in self.shares.items()
            ),
            running=tuple(
                RunningRun(
                    workload=job.name,
                    run=str(job.run),
                    account=job.account,
                    gpus_milli=job.gpus * 1000,
                    started_at_s=job.started_s or 0,
                    protected_until_s=job.protected_until_s(),
                    klass=job.klass,  # type: ignore[arg-type]
                    placement=job.hosts,
                    priority=job.priority,
                )
                for job in self.running()
            ),
            pending=tuple(
                PendingWorkload(
                    workload=job.name,
                    account=job.account,
                    gpus_milli=job.gpus * 1000,
                    submitted_at_s=job.submitted_s,
                    eligible_at_s=job.eligible_s,
                    priority=job.priority,
                    minimum_runtime_s=job.minimum_s,
                    gpu_model=job.model,
                )
                for job in self.waiting()
            ),
            hosts=tuple(self.hosts),
            reservations=self.reservations,
            credits_gpu_ms={path: credit.after(lasted_s) for path, credit in self.credits.items()},
        )

    def tick(self) -> Cycle:
        """Let runs end and leave, decide, check the decisions, and carry them out."""
        for job in self.running():
            assert job.started_s is not None
            if self.at_s >= job.started_s + job.length_s:
                del self.jobs[job.name]
            elif job.leaves_s is not None and self.at_s >= job.leaves_s:
                job.started_s, job.leaves_s, job.hosts, job.eligible_s = None, None, {}, self.at_s
        cycle = run_cycle(self.state(), self.config)
        check(self, cycle)
        for decision in cycle.decisions:
            self._carry_out(decision)
        self.told_to_leave = {(d.workload, d.run) for d in cycle.decisions if d.action == "preempt"}
        self._remember(cycle)
        for job in self.running():
            key = job.account if job.klass == "allocated" else job.account + "!"
            amount = job.gpus * 1000 * self.cycle_s
            self.used[key] += amount
            self.total[key] += amount
            self.bursts.append((self.at_s, key, amount))
        self.at_s += self.cycle_s
        while self.bursts and self.bursts[0][0] + CONFIG.window_s < self.at_s:
            _, key, amount = self.bursts.popleft()
            self.used[key] -= amount
        return cycle

    def _carry_out(self, decision: Decision) -> None:
        job = self.jobs[decision.workload]
        if decision.action == "start":
            assert decision.placement is not None
            job.run += 1
            job.started_s, job.hosts = self.at_s, dict(decision.placement)
            funded = job.minimum_s > 0 and self.shares.get(job.account, 0) > 0
            job.klass = "allocated" if funded else "unallocated"
        elif decision.action == "preempt" and job.leaves_s is None:
            job.leaves_s = self.at_s + CONFIG.grace_s
            if job.klass == "allocated" and "asker_priority" not in decision.numbers:
                self.taken.append(job.name)

    def _remember(self, cycle: Cycle) -> None:
        self.reservations = cycle.reservations
        self.credits = {a.account: a.credit for a in cycle.allocations if a.credit is not None}
        self.decided_s = self.at_s
        bound = {kept.workload for kept in cycle.reservations if kept.kind == "bound"}
        promised = {kept.workload for kept in cycle.reservations if kept.kind == "promise"}
        for since, now in ((self.bound_since, bound | promised), (self.promised_since, promised)):
            for name in list(since):
                if name not in now:
                    del since[name]
        for name in bound:
            self.bound_since.setdefault(name, self.at_s)
        for name in promised:
            self.promised_since.setdefault(name, self.at_s)


def check(world: World, cycle: Cycle) -> None:
    """Assert everything that holds in every cycle."""
    by_name = world.jobs
    decided = Counter(decision.workload for decision in cycle.decisions)
    assert all(times == 1 for times in decided.values())
    assert set(decided) >= {job.name for job in world.waiting()}
    starts = {d.workload: d.placement for d in cycle.decisions if d.action == "start"}
    preempts = [d for d in cycle.decisions if d.action == "preempt"]
    check_starts(world, starts)  # type: ignore[arg-type]
    check_reservations(world, cycle, starts, {d.workload for d in preempts})  # type: ignore[arg-type]
    check_work_conserving(world, cycle, starts)  # type: ignore[arg-type]
    check_moves(world, preempts)  # type: ignore[arg-type]
    check_first(world, cycle)
    for decision in preempts:
        job = by_name[decision.workload]
        assert job.started_s is not None
        assert decision.run == str(job.run)
        if job.klass == "allocated":
            assert world.at_s >= job.protected_until_s()
        named = LEAVES_FOR.match(decision.reason)
        if named is None:
            assert any(host.draining and host.host in job.hosts for host in world.hosts)
            continue
        asker = by_name[named[1]]
        assert asker.started_s is None
        assert asker.name not in starts
        if asker.account == job.account and "asker_priority" in decision.numbers:
            assert asker.priority > job.priority
        elif job.klass == "allocated" and job.leaves_s is None:  # later cycles repeat what one ordered
            assert world.at_s >= job.started_s + CONFIG.quantum_s


def check_first(world: World, cycle: Cycle) -> None:
    """Where nothing was reserved, who comes first of all starts, or has a reservation at once."""
    first = next((d for d in cycle.decisions if d.numbers.get("position") == 1), None)
    if first is None or first.action != "wait" or world.reservations:
        return
    job = world.jobs[first.workload]
    assert first.workload in {kept.workload for kept in cycle.reservations} or not is_funded(world, job)


def is_funded(world: World, job: Job) -> bool:
    """Shares all along its path, and a minimum runtime; what an inner account owns itself has a share of 0."""
    names = job.account.split("/")
    path = ["/".join(names[:depth]) for depth in range(1, len(names) + 1)]
    is_inner = any(other.startswith(f"{job.account}/") for other in world.shares)
    return job.minimum_s > 0 and not is_inner and all(world.shares.get(node, 1) for node in path)


def check_moves(world: World, preempts: list[Decision]) -> None:
    """Between two accounts GPUs move one way, but for reservations that are due against one another.

    An order counts in the cycle that gives it first, and for whom it is given: what is promised on afterwards does not.
    """
    by_share, all_moves = set(), set()
    for decision in preempts:
        named = LEAVES_FOR.match(decision.reason)
        is_new = (decision.workload, decision.run) not in world.told_to_leave
        if named is None or not is_new or PASSED_ON in decision.reason:
            continue
        assert not decision.reason.endswith("an earlier cycle decided it.")
        taker, giver = world.jobs[named[1]].account, world.jobs[decision.workload].account
        if taker != giver:
            all_moves.add((taker, giver))
            if RESERVED not in decision.reason:
                by_share.add((taker, giver))
    assert not {(giver, taker) for taker, giver in by_share} & all_moves


def check_starts(world: World, starts: dict[str, dict[str, int]]) -> None:
    """Gangs start whole, on hosts of one kind that take runs, and no host is ever overfull."""
    kinds = {host.host: host for host in world.hosts}
    load: Counter[str] = Counter()
    for job in world.running():
        load.update(job.hosts)
    for name, placement in starts.items():
        job = world.jobs[name]
        assert sum(placement.values()) == job.gpus * 1000
        assert len({(kinds[host].gpu_model, kinds[host].gpus_milli) for host in placement}) == 1
        assert all(job.model in (None, kinds[host].gpu_model) for host in placement)
        assert not any(kinds[host].draining for host in placement)
        load.update(placement)
    assert all(load[host.host] <= host.gpus_milli for host in world.hosts)


def check_reservations(
    world: World, cycle: Cycle, starts: dict[str, dict[str, int]], leaving: set[str]
) -> None:
    """Who stays beside a reservation leaves it room; promises and what stays are never more than a host has."""
    size = {host.host: host.gpus_milli for host in world.hosts if not host.draining}
    promised: Counter[str] = Counter()
    for kept in cycle.reservations:
        assert kept.workload in {job.name for job in world.waiting()} - starts.keys()
        assert sum(kept.placement.values()) == world.jobs[kept.workload].gpus * 1000
        if kept.kind == "promise":
            promised.update(kept.placement)
    stays: list[tuple[int, dict[str, int]]] = [
        (job.safe_until_s(), job.hosts) for job in world.running() if job.name not in leaving
    ]
    for name, placement in starts.items():
        job = world.jobs[name]
        funded = job.minimum_s > 0 and world.shares.get(job.account, 0) > 0
        safe_s = max(min(job.minimum_s, CONFIG.protection_cap_s), CONFIG.quantum_s)
        stays.append((world.at_s + (safe_s if funded else 0), placement))
    for host, milli in promised.items():
        assert milli + sum(placement.get(host, 0) for _, placement in stays) <= size[host]
    for kept in cycle.reservations:
        for host, milli in kept.placement.items() if kept.kind == "bound" else ():
            beside = sum(
                placement.get(host, 0) for safe_s, placement in stays if safe_s > max(kept.at_s, world.at_s)
            )
            assert milli + promised[host] + beside <= size[host]


def check_work_conserving(world: World, cycle: Cycle, starts: dict[str, dict[str, int]]) -> None:
    """Nothing waits that hosts could take as they are, unless they were reserved before the cycle or are after it."""
    reserved = {host for kept in (*world.reservations, *cycle.reservations) for host in kept.placement}
    free = {h.host: h.gpus_milli for h in world.hosts if not h.draining and h.host not in reserved}
    for placement in (*(job.hosts for job in world.running()), *starts.values()):
        for host, milli in placement.items():
            if host in free:
                free[host] -= milli
    kinds = {host.host: (host.gpu_model, host.gpus_milli) for host in world.hosts}
    for job in world.waiting():
        if job.name in starts or job.eligible_s > world.at_s or is_kept_out(world, job):
            continue
        for kind in {kinds[host] for host in free}:
            if job.model not in (None, kind[0]):
                continue
            wholes, rest = divmod(job.gpus * 1000, kind[1])
            alike = sorted((free[host] for host in free if kinds[host] == kind), reverse=True)
            fits = alike[:wholes].count(kind[1]) == wholes and (
                not rest or any(milli >= rest for milli in alike[wholes:])
            )
            assert not fits, f"{job.name} waits though it fits"


def random_world(rng: random.Random) -> World:
    """A few hosts of one or two kinds, and a tree of accounts."""
    sizes = [rng.choice([2, 4, 8]) for _ in range(rng.choice([1, 1, 2]))]
    hosts = [
        HostState(host=f"h{n:02}", gpus_milli=1000 * rng.choice(sizes), gpu_model=rng.choice(["a", "a", "b"]))
        for n in range(rng.randint(1, 14))
    ]
    paths = ["p/x", "p/y", "q/x", "q/y/z", "r", "s"][: rng.randint(2, 6)]
    world = World(hosts, {path: rng.choice([0, 1, 1, 2, 5]) for path in paths})
    for path in paths:
        world.used[path] = rng.choice([0, 1, 2, 4]) * world.healthy_milli * CONFIG.window_s // 8
        world.used[path + "!"] = rng.choice([0, 1, 5]) * world.healthy_milli * 3600
    return world


def divided_by_turns(world: World, seed: int) -> World:
    """Let every other world divide its GPUs by credits."""
    world.config = CREDITS if seed % 2 else CONFIG
    return world


def drain_or_repair(rng: random.Random, world: World) -> None:
    """Begin to empty a host, or take it back."""
    place = rng.randrange(len(world.hosts))
    host = world.hosts[place]
    world.hosts[place] = replace(host, draining=not host.draining)


def random_job(rng: random.Random, world: World) -> Job:
    """A job of any size up to the cluster's."""
    kind = rng.choice(world.hosts)
    alike = [h for h in world.hosts if (h.gpu_model, h.gpus_milli) == (kind.gpu_model, kind.gpus_milli)]
    most = sum(host.gpus_milli for host in alike) // 1000
    return Job(
        name=f"w{world.submitted}",
        account=rng.choice(list(world.shares)),
        gpus=rng.choice([1, 1, 2, rng.randint(1, most), most]) if most > 1 else 1,
        minimum_s=rng.choice([0, 30, 300, 1200, 3600, 20_000]),
        length_s=rng.choice([30, 600, 3000, 10_000]),
        submitted_s=world.at_s,
        priority=rng.choice([0, 0, 0, 1, 2]),
        model=rng.choice([None, None, kind.gpu_model]),
    )
