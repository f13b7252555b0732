"""The rules of the engine once more, as slowly as can be: every second of everything is counted."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.simulating import T0, Listed

from gpuledger.simulator.facts import (
    Cancelled,
    Departure,
    Fact,
    HostChanged,
    HostCondition,
    Left,
    Reserved,
    Started,
    Submitted,
    Told,
    UserAsked,
)
from gpuledger.simulator.jobs import Job
from gpuledger.simulator.worlds.protocol import Cluster, Host, Orders, Run, Waiting, World


@dataclass(eq=False)
class Lived:
    """What a run did until now, second by second."""

    run: Run
    work_s: int
    lived: int = 0
    loaded: int = 0
    worked: int = 0
    saved: int = 0
    idle: int = 0

    @property
    def job(self) -> Job:
        return self.run.job

    def is_done(self) -> bool:
        return self.loaded == self.job.startup_s and self.worked == self.work_s

    def live(self) -> None:
        """Live for one second."""
        self.lived += 1
        if self.loaded < self.job.startup_s:
            self.loaded += 1
        elif self.worked < self.work_s:
            self.worked += 1
            if self.job.checkpoint_s and self.worked % self.job.checkpoint_s == 0:
                self.saved = self.worked
        else:
            self.idle += 1


@dataclass
class Seconds:
    """A simulation of a few hosts.

    Args:
        sizes: GPUs by host h0, h1, ...
        demand: What users ask for.
        outages: (faults or wishes, host, instant, length), no two in one instant.
        grace_s: From the order to leave until it is gone.
    """

    sizes: Sequence[float]
    demand: Listed
    outages: Sequence[tuple[str, int, int, int]]
    grace_s: int
    at_s: int = 0
    facts: list[Fact] = field(default_factory=list)
    runs: list[Lived] = field(default_factory=list)
    told: list[Lived] = field(default_factory=list)
    waits: list[tuple[int, Waiting]] = field(default_factory=list)
    coming: list[Job] = field(default_factory=list)
    left_s: dict[str, int] = field(default_factory=dict)
    repairs: dict[str, int] = field(default_factory=dict)
    mended: list[tuple[int, str]] = field(default_factory=list)
    reserved: dict[str, int] = field(default_factory=dict)

    def play(self, world: World, until_s: int) -> list[Fact]:
        self.world = world
        self.cluster = Cluster(cluster="c", at_s=T0)
        for number, gpus in enumerate(self.sizes):
            milli = round(gpus * 1000)
            host = Host(host=f"h{number}", gpus_milli=milli, gpu_model="h100", free_milli=milli)
            self.cluster.hosts[host.host] = host
        self.coming = list(self.demand.first())
        due = list(self.outages)
        wake_s: int | None = 0
        for self.at_s in range(until_s):
            self.cluster.at_s = T0 + self.at_s
            while True:
                before = len(self.facts)
                self.happen(due)
                if len(self.facts) == before and wake_s != self.at_s:
                    break
                wake_s = self.obey(world.decide(self.cluster))
            for lived in self.runs:
                lived.live()
        return self.facts

    def tell(self, fact: Fact) -> None:
        self.facts.append(fact)
        self.world.told(fact)

    def happen(self, due: list[tuple[str, int, int, int]]) -> None:
        for lived in list(self.runs):
            if lived.is_done() and lived.idle == lived.job.idle_s:
                self.leave(lived, Departure.DONE)
            elif lived.job.time_limit_s == lived.lived:
                self.leave(lived, Departure.TIME_LIMIT)
        for lived in list(self.told):
            if lived in self.runs and lived.run.leaves_s == self.cluster.at_s:
                self.leave(lived, Departure.PREEMPTED)
        for at_s, host in [row for row in self.mended if row[0] == self.at_s]:
            self.mended.remove((at_s, host))
            self.cluster.hosts[host].free_milli = self.cluster.hosts[host].gpus_milli
            self.change(host, HostCondition.HEALTHY, planned=False)
        for row in [row for row in due if row[2] == self.at_s]:
            due.remove(row)
            self.break_host(row[0], f"h{row[1]}", row[3])
        self.ask()

    def ask(self) -> None:
        """Users give up, then users ask; what comes of that in the same second comes at once."""
        while True:
            gone = next(
                (
                    waiting
                    for end_s, waiting in self.waits
                    if end_s <= self.at_s and self.cluster.waiting.get(waiting.job.job) is waiting
                ),
                None,
            )
            if gone is not None:
                del self.cluster.waiting[gone.job.job]
                self.tell(Cancelled(at_s=self.cluster.at_s, job=gone.job.job))
                self.over(gone.job)
                continue
            job = next((job for job in self.coming if job.submitted_s == self.cluster.at_s), None)
            if job is None:
                return
            self.coming.remove(job)
            self.tell(Submitted(at_s=self.cluster.at_s, job=job))
            self.wait(job, 0)

    def wait(self, job: Job, runs: int) -> None:
        waiting = self.cluster.waiting[job.job] = Waiting(job=job, since_s=self.cluster.at_s, runs=runs)
        if job.patience_s is not None:
            self.waits.append((self.at_s + job.patience_s, waiting))

    def over(self, job: Job) -> None:
        self.coming.extend(self.demand.after(job, self.cluster.at_s))

    def change(self, host: str, condition: HostCondition, *, planned: bool) -> None:
        self.cluster.hosts[host].condition = condition
        self.tell(HostChanged(at_s=self.cluster.at_s, host=host, condition=condition, planned=planned))

    def break_host(self, kind: str, name: str, lasts_s: int) -> None:
        host = self.cluster.hosts[name]
        if kind == "faults" and host.condition != "down":
            host.free_milli = 0
            self.repairs.pop(name, None)
            self.change(name, HostCondition.DOWN, planned=False)
            self.mended.append((self.at_s + lasts_s, name))
            for lived in [lived for lived in self.runs if name in lived.run.placement]:
                self.leave(lived, Departure.HOST_FAILED)
        if kind == "wishes" and host.condition == "healthy":
            self.repairs[name] = lasts_s
            self.change(name, HostCondition.DRAINING, planned=True)
            self.empty(name)

    def empty(self, name: str) -> None:
        if name in self.repairs and not any(name in lived.run.placement for lived in self.runs):
            self.cluster.hosts[name].free_milli = 0
            self.change(name, HostCondition.DOWN, planned=True)
            self.mended.append((self.at_s + self.repairs.pop(name), name))

    def leave(self, lived: Lived, why: Departure) -> None:
        job = lived.job
        self.runs.remove(lived)
        del self.cluster.running[job.job]
        for name, milli in lived.run.placement.items():
            if self.cluster.hosts[name].condition != "down":
                self.cluster.hosts[name].free_milli += milli
        kept = lived.worked if lived.is_done() else lived.saved
        taken = why in (Departure.PREEMPTED, Departure.HOST_FAILED)
        again = taken and job.resumable and not lived.is_done()
        self.tell(
            Left(
                at_s=self.cluster.at_s,
                job=job.job,
                run=lived.run.run,
                why=why,
                requeued=again,
                kept_s=kept,
                lost_s=lived.worked - kept,
                loading_s=lived.loaded,
                idle_s=lived.idle,
            )
        )
        if again:
            self.left_s[job.job] = lived.work_s - kept
            self.wait(job, lived.run.run)
        else:
            self.left_s.pop(job.job, None)
            self.over(job)
        for name in lived.run.placement:
            self.empty(name)

    def obey(self, orders: Orders) -> int | None:
        by_job = {lived.job.job: lived for lived in self.runs}
        for name in orders.stay:
            if by_job[name].run.leaves_s is not None:
                by_job[name].run.leaves_s = None
                self.told.remove(by_job[name])
        for name in orders.leave:
            run = by_job[name].run
            if run.leaves_s is None:
                run.leaves_s = self.cluster.at_s + self.grace_s
                self.told.append(by_job[name])
                self.tell(Told(at_s=self.cluster.at_s, job=name, run=run.run, leaves_s=run.leaves_s))
        for order in orders.starts:
            self.start(order.job, dict(order.placement), order.klass, order.protected_s)  # type: ignore[arg-type]
        for host, name in orders.asks:
            self.tell(UserAsked(at_s=self.cluster.at_s, host=host, job=name))
        if orders.reserved is not None and dict(orders.reserved) != self.reserved:
            self.reserved = dict(orders.reserved)
            self.tell(Reserved(at_s=self.cluster.at_s, placement=self.reserved))
        return None if orders.wake_s is None else orders.wake_s - T0

    def start(self, name: str, placement: dict[str, int], klass: str, protected_s: int) -> None:
        waiting = self.cluster.waiting.pop(name)
        for host, milli in placement.items():
            self.cluster.hosts[host].free_milli -= milli
        run = Run(
            job=waiting.job,
            run=waiting.runs + 1,
            placement=placement,
            klass=klass,  # type: ignore[arg-type]
            started_s=self.cluster.at_s,
            protected_until_s=self.cluster.at_s + protected_s,
            loaded_s=self.cluster.at_s + waiting.job.startup_s,
        )
        self.cluster.running[name] = run
        self.runs.append(Lived(run, self.left_s.get(name, waiting.job.work_s)))
        self.tell(
            Started(
                at_s=self.cluster.at_s,
                job=name,
                run=run.run,
                placement=placement,
                klass=run.klass,
                protected_s=protected_s,
            )
        )
