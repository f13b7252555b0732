"""The engine: it owns the time, the hosts, the runs and the queue, and a world decides.

It jumps from one instant at which something happens to the next. All facts of the instant are told to the world;
then the world is asked once, and what it orders is done at once. What follows in the same instant (a run without
grace leaves) is told too, and the world is asked again.

Runs that are told to leave work on during their grace. What a host's failure or an order interrupts is lost back to
the last checkpoint; a resumable job waits again with the rest of its work, any other is over. A run that is taken
when its work is done is over as well. A job that meets its time limit is over, with what is left of its work undone.

A host that drains is down once it is empty, for as long as was drawn with the request, and healthy after that. A
fault ends a drain: the repair of the fault does both. Hosts that are down do not break, and nobody asks for them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpuledger.kernel.errors import Refused
from gpuledger.policy.placement import Placement
from gpuledger.simulator.calendar import Calendar, Kind
from gpuledger.simulator.course import Course, course
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
from gpuledger.simulator.faults import Outage, faults, wishes
from gpuledger.simulator.jobs import Job
from gpuledger.simulator.ordering import ImpossibleOrder, check_reserved, check_start, check_told
from gpuledger.simulator.scenario import Scenario
from gpuledger.simulator.worlds.protocol import Cluster, Host, Orders, Run, Start, Waiting, World

WATCHED_EACH_S = 3_600
"""Whoever watches hears once for each simulated hour in which something happened."""
ROUNDS_MAX = 10_000
"""So often a world is asked at one instant before something is said to be wrong."""


def simulate(
    scenario: Scenario, world: World, *, seed: int | None = None, watch: Callable[[int], None] | None = None
) -> Iterator[Fact]:
    """Yield what happens, in order of time, from the beginning of a scenario until just before its end.

    Args:
        scenario: What is simulated. Nothing of it is changed.
        world: Who decides; made for this scenario and used for nothing else.
        seed: What chance is drawn from; that of the scenario unless given.
        watch: Told the simulated instant now and then, for a progress bar.

    Raises:
        ImpossibleOrder: When the world orders what cannot be done.
        Refused: When the demand is out of order.
    """
    yield from _Simulation(scenario, world, scenario.seed if seed is None else seed).facts(watch)


@dataclass(slots=True)
class _Work:
    """A run as the engine alone knows it."""

    run: Run
    course: Course
    remaining_s: int


class _Simulation:
    def __init__(self, scenario: Scenario, world: World, seed: int) -> None:
        self._world = world
        self._grace_s = scenario.policy.grace_s
        self._end_s = scenario.end_s
        self._demand = scenario.demand(seed)
        self._first = iter(self._demand.first())
        self._at_s = self._asked_s = scenario.start_s
        self._rounds = 0
        self._facts: list[Fact] = []
        self._calendar = Calendar()
        self._cluster = Cluster(cluster=scenario.cluster, at_s=scenario.start_s)
        self._works: dict[str, _Work] = {}
        self._remaining_s: dict[str, int] = {}  # of jobs that had a run and wait
        self._reserved: Placement = {}
        self._on: dict[str, dict[str, int]] = {}  # milli-GPU by host and job
        self._wishes: dict[str, Iterator[Outage]] = {}
        self._faults: dict[str, Iterator[Outage]] = {}
        self._repair_s: dict[str, int] = {}  # of hosts that drain
        self._wakes_s: int | None = scenario.start_s
        for spec in scenario.hosts:
            if spec.host in self._on:
                raise Refused(f"host {spec.host!r} is listed twice", hint="give each host a name of its own")
            self._cluster.hosts[spec.host] = Host(
                host=spec.host,
                gpus_milli=spec.gpus_milli,
                gpu_model=spec.gpu_model,
                rack=spec.rack,
                free_milli=spec.gpus_milli,
            )
            self._on[spec.host] = {}
            drawn = {"seed": seed, "start_s": scenario.start_s}
            self._faults[spec.host] = faults(scenario.faults, spec.host, **drawn)
            self._wishes[spec.host] = wishes(scenario.faults, spec.host, **drawn)
            self._expect(Kind.FAILS, spec.host, self._faults[spec.host])
            self._expect(Kind.DRAINS, spec.host, self._wishes[spec.host])
        self._calendar.put(scenario.start_s, Kind.WAKES, None)
        self._expect_submission()
        handlers: dict[Kind, Callable[..., None]] = {
            Kind.ENDS: self._ends,
            Kind.GRACE_OVER: self._grace_over,
            Kind.MENDED: self._mended,
            Kind.FAILS: self._fails,
            Kind.DRAINS: self._drains,
            Kind.GIVES_UP: self._gives_up,
            Kind.SUBMITS: self._submits,
            Kind.FOLLOWS: self._submitted,
            Kind.WAKES: self._wakes,
        }
        self._handlers = [handlers[kind] for kind in Kind]

    def facts(self, watch: Callable[[int], None] | None) -> Iterator[Fact]:
        """Yield what happens."""
        watched_s = self._at_s
        while (at_s := self._calendar.next_s()) is not None and at_s < self._end_s:
            if watch is not None and at_s >= watched_s:
                watch(at_s)
                watched_s = at_s - at_s % WATCHED_EACH_S + WATCHED_EACH_S
            if self._happens(at_s):
                self._obey(self._world.decide(self._cluster))
                facts, self._facts = self._facts, []
                yield from facts

    def _happens(self, at_s: int) -> bool:
        """Let everything of an instant happen, and say whether the world has to be asked."""
        self._at_s = self._cluster.at_s = at_s
        calendar, handlers = self._calendar, self._handlers
        while calendar.next_s() == at_s:
            kind, subject = calendar.take()
            handlers[kind](subject)
        asked = bool(self._facts)
        if self._wakes_s is not None and self._wakes_s <= at_s:
            self._wakes_s, asked = None, True
        return asked

    def _tell(self, fact: Fact) -> None:
        self._facts.append(fact)
        self._world.told(fact)

    # What happens by itself.

    def _expect_submission(self) -> None:
        job = next(self._first, None)
        if job is not None:
            self._put_submission(job, Kind.SUBMITS)

    def _put_submission(self, job: Job, kind: Kind) -> None:
        if job.submitted_s < self._at_s:
            raise Refused(
                f"job {job.job!r} is submitted at {job.submitted_s}, and it is {self._at_s} already",
                hint="a demand gives its jobs in order of submission, none before the beginning or before the job"
                " that it follows",
            )
        self._calendar.put(job.submitted_s, kind, job)

    def _submits(self, job: Job) -> None:
        self._submitted(job)
        self._expect_submission()

    def _submitted(self, job: Job) -> None:
        if job.job in self._cluster.waiting or job.job in self._cluster.running:
            raise Refused(
                f"job {job.job!r} is submitted twice", hint="a demand gives each job an id of its own"
            )
        if job.gpus_milli <= 0 or min(job.work_s, job.startup_s, job.idle_s) < 0:
            raise Refused(
                f"job {job.job!r} asks for {job.gpus_milli} milli-GPU, to load {job.startup_s} s, work"
                f" {job.work_s} s and idle {job.idle_s} s",
                hint="a job asks for some GPUs, and no length is below 0",
            )
        self._tell(Submitted(at_s=self._at_s, job=job))
        self._wait(job, runs=0)

    def _wait(self, job: Job, runs: int) -> None:
        waiting = self._cluster.waiting[job.job] = Waiting(job=job, since_s=self._at_s, runs=runs)
        if job.patience_s is not None:
            self._calendar.put(self._at_s + job.patience_s, Kind.GIVES_UP, waiting)

    def _gives_up(self, waiting: Waiting) -> None:
        name = waiting.job.job
        if self._cluster.waiting.get(name) is waiting:
            del self._cluster.waiting[name]
            self._tell(Cancelled(at_s=self._at_s, job=name))
            self._over(waiting.job)

    def _over(self, job: Job) -> None:
        self._remaining_s.pop(job.job, None)
        for following in self._demand.after(job, self._at_s):
            self._put_submission(following, Kind.FOLLOWS)

    def _ends(self, work: _Work) -> None:
        if self._works.get(work.run.job.job) is work:
            self._leave(work, work.course.why)

    def _grace_over(self, work: _Work) -> None:
        if self._works.get(work.run.job.job) is work and work.run.leaves_s == self._at_s:
            self._leave(work, Departure.PREEMPTED)

    def _leave(self, work: _Work, why: Departure) -> None:
        run, job = work.run, work.run.job
        done = work.course.is_done(self._at_s)
        outcome = work.course.outcome(self._at_s, job.checkpoint_s)
        requeued = not done and job.resumable and why in (Departure.PREEMPTED, Departure.HOST_FAILED)
        del self._works[job.job], self._cluster.running[job.job]
        emptied = self._give_back(run)
        self._tell(
            Left(
                at_s=self._at_s,
                job=job.job,
                run=run.run,
                why=why,
                requeued=requeued,
                kept_s=outcome.kept_s,
                lost_s=outcome.lost_s,
                loading_s=outcome.loading_s,
                idle_s=outcome.idle_s,
            )
        )
        if requeued:
            self._remaining_s[job.job] = work.remaining_s - outcome.kept_s
            self._wait(job, run.run)
        else:
            self._over(job)
        for host in emptied:
            self._repair(host)

    def _give_back(self, run: Run) -> list[Host]:
        """Return GPUs to their hosts, and say which of these can be repaired now."""
        emptied = []
        for name, milli in run.placement.items():
            host, there = self._cluster.hosts[name], self._on[name]
            del there[run.job.job]
            if host.condition is not HostCondition.DOWN:
                host.free_milli += milli
                if host.condition is HostCondition.DRAINING and not there:
                    emptied.append(host)
        return emptied

    # What becomes of hosts.

    def _expect(self, kind: Kind, host: str, outages: Iterator[Outage]) -> None:
        outage = next(outages, None)
        if outage is not None:
            self._calendar.put(outage.at_s, kind, (host, outage.lasts_s))

    def _change(self, host: Host, condition: HostCondition, *, planned: bool = False) -> None:
        host.condition = condition
        self._tell(HostChanged(at_s=self._at_s, host=host.host, condition=condition, planned=planned))

    def _fails(self, subject: tuple[str, int]) -> None:
        name, lasts_s = subject
        self._expect(Kind.FAILS, name, self._faults[name])
        host = self._cluster.hosts[name]
        if host.condition is HostCondition.DOWN:
            return
        host.free_milli = 0
        self._repair_s.pop(name, None)
        self._change(host, HostCondition.DOWN)
        self._calendar.put(self._at_s + lasts_s, Kind.MENDED, host)
        for job in list(self._on[name]):
            self._leave(self._works[job], Departure.HOST_FAILED)

    def _drains(self, subject: tuple[str, int]) -> None:
        name, lasts_s = subject
        self._expect(Kind.DRAINS, name, self._wishes[name])
        host = self._cluster.hosts[name]
        if host.condition is HostCondition.HEALTHY:
            self._repair_s[name] = lasts_s
            self._change(host, HostCondition.DRAINING, planned=True)
            if not self._on[name]:
                self._repair(host)

    def _repair(self, host: Host) -> None:
        host.free_milli = 0
        self._change(host, HostCondition.DOWN, planned=True)
        self._calendar.put(self._at_s + self._repair_s.pop(host.host), Kind.MENDED, host)

    def _mended(self, host: Host) -> None:
        host.free_milli = host.gpus_milli
        self._change(host, HostCondition.HEALTHY)

    # What the world orders.

    def _wakes(self, _: None) -> None:
        """Nothing happens: the world is asked when the instant is that of its last word."""

    def _obey(self, orders: Orders) -> None:
        self._see_to_progress()
        name, cluster = self._world.name, self._cluster
        if orders.leave or orders.stay or orders.asks:
            check_told(name, cluster, orders)
            for job in orders.stay:
                cluster.running[job].leaves_s = None
            for job in orders.leave:
                self._tell_to_leave(self._works[job])
        for start in orders.starts:
            check_start(name, cluster, start)
            self._start(start)
        for host, job in orders.asks:
            self._tell(UserAsked(at_s=self._at_s, host=host, job=job))
        if orders.reserved is not None and orders.reserved != self._reserved:
            self._reserved = check_reserved(name, cluster, orders.reserved)
            self._tell(Reserved(at_s=self._at_s, placement=self._reserved))
        self._wakes_s = orders.wake_s
        if orders.wake_s is not None:
            if orders.wake_s <= self._at_s:
                raise ImpossibleOrder(
                    name, self._at_s, f"it wants to be asked at {orders.wake_s}, which is over"
                )
            self._calendar.put(orders.wake_s, Kind.WAKES, None)

    def _see_to_progress(self) -> None:
        if self._at_s != self._asked_s:
            self._asked_s, self._rounds = self._at_s, 0
        self._rounds += 1
        if self._rounds > ROUNDS_MAX:
            raise ImpossibleOrder(
                self._world.name, self._at_s, f"it was asked {ROUNDS_MAX} times, and time does not go on"
            )

    def _tell_to_leave(self, work: _Work) -> None:
        run = work.run
        if run.leaves_s is None:
            run.leaves_s = self._at_s + self._grace_s
            self._calendar.put(run.leaves_s, Kind.GRACE_OVER, work)
            self._tell(Told(at_s=self._at_s, job=run.job.job, run=run.run, leaves_s=run.leaves_s))

    def _start(self, start: Start) -> None:
        waiting = self._cluster.waiting.pop(start.job)
        job, at_s, placement = waiting.job, self._at_s, dict(start.placement)
        for name, milli in placement.items():
            self._cluster.hosts[name].free_milli -= milli
            self._on[name][job.job] = milli
        remaining_s = self._remaining_s.get(job.job, job.work_s)
        way = course(job, at_s, remaining_s)
        run = self._cluster.running[job.job] = Run(
            job=job,
            run=waiting.runs + 1,
            placement=placement,
            klass=start.klass,
            started_s=at_s,
            protected_until_s=at_s + start.protected_s,
            loaded_s=way.loaded_s,
        )
        work = self._works[job.job] = _Work(run, way, remaining_s)
        self._calendar.put(way.ends_s, Kind.ENDS, work)
        self._tell(
            Started(
                at_s=at_s,
                job=job.job,
                run=run.run,
                placement=placement,
                klass=start.klass,
                protected_s=start.protected_s,
                priority=start.priority,
            )
        )
