"""What came of a simulation: one pass over its facts, in memory that grows with hours and accounts, not with jobs.

The window that is measured is ``[measured_from_s, end_s)``. Sums are exact integrals over it. What is counted is what
happened in it: jobs submitted, runs that left, drains begun. Who waited when it began is not forgotten: such a job
counts from then on, among those that had waited as long as it had.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpuledger.kernel.accounts import owner_of
from gpuledger.kernel.errors import Corrupt
from gpuledger.policy.placement import Placement
from gpuledger.policy.state import WorkClass
from gpuledger.simulator.capacity import Capacity, Partition
from gpuledger.simulator.drains import Drains
from gpuledger.simulator.facts import (
    Cancelled,
    Departure,
    Fact,
    HostChanged,
    Left,
    Reserved,
    Started,
    Submitted,
    Told,
    UserAsked,
)
from gpuledger.simulator.faults import needs_hands
from gpuledger.simulator.jobs import Job
from gpuledger.simulator.levels import Level
from gpuledger.simulator.owing import HOUR_S, Hours, Owing
from gpuledger.simulator.portions import parts_of
from gpuledger.simulator.scenario import Scenario
from gpuledger.simulator.waits import Waits, size_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The cluster hour by hour.

    Args:
        occupied: A + N, in gpu_ms.
        usable: H, in gpu_ms.
        waiting: What waiting jobs ask for, funded or not, in gpu_ms.
        gang: The largest gang that could start, in milli-GPU on average, times an hour.
        gang_least: The same at its least, in milli-GPU.
    """

    occupied: "array[int]" = field(default_factory=lambda: array("q"))
    usable: "array[int]" = field(default_factory=lambda: array("q"))
    waiting: "array[int]" = field(default_factory=lambda: array("q"))
    gang: "array[int]" = field(default_factory=lambda: array("q"))
    gang_least: "array[int]" = field(default_factory=lambda: array("q"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What an account held over the window, in gpu_ms.

    Args:
        allocated: As allocated, physical.
        unallocated: As unallocated.
        loading: What of both went into loading; of runs that left.
        idle: What of both nobody used after the work was done; of runs that left.
        lost: Work that has to be done again, of runs that left.
        preemptions: How often its GPUs were taken.
    """

    allocated: int
    unallocated: int
    loading: int
    idle: int
    lost: int
    preemptions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """What is reported of a simulation, exact.

    Args:
        days: How many days were measured.
        jobs: How many jobs were submitted in them.
        cancelled: How many of those were given up before they ever started.
        partition: Every GPU-second in one state.
        waits: How long jobs waited.
        preemptions: How often a run's GPUs were taken for somebody else.
        failures: How often a host failed under a run.
        lost: Work that has to be done again, in gpu_ms, by why the run left.
        drains: Hosts that were emptied.
        accounts: Account -> what it held.
        hours: Account -> what it was owed and given, by hour.
        series: The cluster by hour.
    """

    days: int
    jobs: int
    cancelled: int
    partition: Partition
    waits: Waits
    preemptions: int
    failures: int
    lost: Mapping[Departure, int]
    drains: Drains
    accounts: Mapping[str, Use]
    hours: Mapping[str, Hours]
    series: Series


def measure(facts: Iterable[Fact], scenario: Scenario) -> Measures:
    """Measure a simulation.

    Args:
        facts: What happened, in order; nothing that happens at the end or after it is looked at.
        scenario: What was simulated.

    Raises:
        Corrupt: When facts contradict each other: a GPU that was handed over twice, a run that never started.
    """
    meter = _Meter(scenario)
    for fact in facts:
        if fact.at_s >= scenario.end_s:
            break
        meter.take(fact)
    return meter.finish()


@dataclass(slots=True)
class _Run:
    klass: WorkClass
    placement: Placement
    started_s: int


@dataclass(slots=True)
class _Use:
    allocated: Level
    unallocated: Level
    loading: int = 0
    idle: int = 0
    lost: int = 0
    preemptions: int = 0


@dataclass(slots=True)
class _Ask:
    """A job that is not over."""

    job: Job
    account: str
    group: str
    size: str
    need: int
    demand: bool
    since_s: int
    runs: int = 0
    run: _Run | None = None


class _Meter:
    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._from_s = scenario.measured_from_s
        self._capacity = Capacity(scenario.hosts, self._from_s)
        self._owing = Owing(parts_of(scenario.accounts), self._from_s)
        self._waits = Waits()
        self._drains = Drains(self._from_s)
        self._asks: dict[str, _Ask] = {}
        self._accounts: dict[str, _Use] = {}
        self._waiting = Level(self._from_s)
        self._series = Series()
        self._before = (0, 0)
        self._lost: Counter[Departure] = Counter()
        self._departures: Counter[Departure] = Counter()
        self._jobs = self._cancelled = 0
        self._now_s = scenario.start_s
        self._edge_s = self._from_s
        self._by_model: Counter[str | None] = Counter()
        for host in scenario.hosts:
            self._by_model[host.gpu_model] += host.gpus_milli
            self._by_model[None] += host.gpus_milli

    def take(self, fact: Fact) -> None:
        """Take note of one fact."""
        if fact.at_s != self._now_s:
            self._go_on(fact.at_s)
        match fact:
            case Submitted():
                self._submit(fact)
            case Started():
                self._start(fact)
            case Left():
                self._leave(fact)
            case Cancelled():
                self._cancel(fact)
            case HostChanged():
                self._capacity.change(fact)
                scenario = self._scenario
                hands = needs_hands(scenario.faults, fact.host, fact.at_s, seed=scenario.seed)
                self._drains.change(fact, hands=hands)
            case UserAsked():
                self._drains.ask(fact.host)
            case Reserved():
                self._capacity.reserve(fact.at_s, fact.placement)
            case Told():
                pass  # it holds its GPUs until it is gone, and that is told when it happens

    def finish(self) -> Measures:
        """Close the window and return what there is."""
        end_s = self._scenario.end_s
        self._go_on(end_s)
        self._drains.close(end_s)
        for ask in self._asks.values():
            if ask.run is None:
                self._waited(ask, end_s, started=False)
        return Measures(
            days=self._scenario.days,
            jobs=self._jobs,
            cancelled=self._cancelled,
            partition=self._capacity.partition(end_s),
            waits=self._waits,
            preemptions=self._departures[Departure.PREEMPTED],
            failures=self._departures[Departure.HOST_FAILED],
            lost=dict(self._lost),
            drains=self._drains,
            accounts={path: _closed(use, end_s) for path, use in sorted(self._accounts.items())},
            hours=self._owing.hours(),
            series=self._series,
        )

    def _go_on(self, at_s: int) -> None:
        """All of an instant is told; time goes on to the next one, over the full hours in between."""
        if at_s < self._now_s:
            raise Corrupt(f"a fact of {at_s} s came after one of {self._now_s} s", hint="facts come in order")
        for host in self._drains.open:
            if self._capacity.empty(host):
                self._drains.emptied(self._now_s, host)
        self._capacity.settle(self._now_s)
        while self._edge_s <= at_s:
            self._end_hour(self._edge_s)
            if at_s > self._edge_s:
                self._capacity.settle(self._edge_s)
            self._edge_s += HOUR_S
        self._now_s = at_s

    def _end_hour(self, to_s: int) -> None:
        gang, least = self._capacity.take_gang(to_s)
        partition = self._capacity.partition(to_s)
        waiting, healthy = self._waiting.take(to_s), self._capacity.healthy.take(to_s)
        if to_s > self._from_s:  # else it is the beginning, and no hour is over
            self._owing.end_hour(to_s, healthy)
            occupied, usable = self._before
            self._series.occupied.append(partition.occupied - occupied)
            self._series.usable.append(partition.usable - usable)
            self._series.waiting.append(waiting)
            self._series.gang.append(gang)
            self._series.gang_least.append(least)
        self._before = (partition.occupied, partition.usable)

    def _submit(self, fact: Submitted) -> None:
        job = fact.job
        if job.job in self._asks:
            raise Corrupt(f"job {job.job} was submitted twice", hint="each has an id of its own")
        fits = job.gpus_milli <= self._by_model[job.gpu_model]
        ask = _Ask(
            job,
            owner_of(job.account),
            self._scenario.groups.of(job),
            size_of(job.gpus_milli),
            job.gpus_milli * job.minimum_runtime_s,
            # What asks for minimum runtime 0 asks for unallocated time, which nobody is owed.
            job.minimum_runtime_s > 0 and fits,
            fact.at_s,
        )
        self._asks[job.job] = ask
        self._jobs += fact.at_s >= self._from_s
        self._wait(ask, fact.at_s, 1)

    def _wait(self, ask: _Ask, at_s: int, sign: int) -> None:
        milli = sign * ask.job.gpus_milli
        self._waiting.move(at_s, milli)
        if ask.demand:
            self._owing.wait(at_s, ask.account, milli, ask.need)

    def _start(self, fact: Started) -> None:
        ask = self._asks.get(fact.job)
        if ask is None or ask.run is not None:
            raise Corrupt(f"job {fact.job} started at {fact.at_s} s and did not wait", hint="ask the engine")
        self._wait(ask, fact.at_s, -1)
        self._waited(ask, fact.at_s, started=True)
        ask.runs += 1
        ask.run = _Run(fact.klass, fact.placement, fact.at_s)
        self._hold(ask, ask.run, fact.at_s, 1)

    def _hold(self, ask: _Ask, run: _Run, at_s: int, sign: int) -> None:
        milli = sign * sum(run.placement.values())
        use = self._use(ask.account)
        if run.klass == "allocated":
            use.allocated.move(at_s, milli)
            self._owing.run(at_s, ask.account, milli, ask.need)
        else:
            use.unallocated.move(at_s, milli)
        if sign > 0:
            self._capacity.hold(at_s, run.placement, run.klass)
        else:
            self._capacity.release(at_s, run.placement, run.klass)

    def _leave(self, fact: Left) -> None:
        ask = self._asks.get(fact.job)
        if ask is None or ask.run is None:
            raise Corrupt(f"job {fact.job} left at {fact.at_s} s and did not run", hint="ask the engine")
        run, ask.run = ask.run, None
        self._hold(ask, run, fact.at_s, -1)
        if fact.at_s >= self._from_s:
            self._count(ask, run, fact)
        if fact.requeued:
            ask.since_s = fact.at_s
            self._wait(ask, fact.at_s, 1)
        else:
            del self._asks[fact.job]

    def _count(self, ask: _Ask, run: _Run, fact: Left) -> None:
        """Count a run that left, its loading and unused time as far as they lie in the window."""
        milli, use = sum(run.placement.values()), self._use(ask.account)
        loaded_s = min(run.started_s + fact.loading_s, fact.at_s)
        use.loading += milli * max(loaded_s - max(run.started_s, self._from_s), 0)
        use.idle += milli * (fact.at_s - max(fact.at_s - fact.idle_s, run.started_s, self._from_s))
        use.lost += milli * fact.lost_s
        use.preemptions += fact.why is Departure.PREEMPTED
        self._lost[fact.why] += milli * fact.lost_s
        self._departures[fact.why] += 1

    def _cancel(self, fact: Cancelled) -> None:
        ask = self._asks.pop(fact.job, None)
        if ask is None or ask.run is not None:
            raise Corrupt(
                f"job {fact.job} was given up at {fact.at_s} s and did not wait", hint="ask the engine"
            )
        self._wait(ask, fact.at_s, -1)
        self._cancelled += ask.runs == 0 and ask.since_s >= self._from_s
        self._waited(ask, fact.at_s, started=False)

    def _waited(self, ask: _Ask, at_s: int, *, started: bool) -> None:
        """Count a wait that is over in the window, or was when it ended."""
        if at_s < self._from_s:
            return
        wait_s, entered_s = at_s - ask.since_s, max(self._from_s - ask.since_s, 0)
        if ask.runs:
            self._waits.again[ask.group].add(wait_s, ended=started, entered=entered_s)
        else:
            self._waits.first(ask.group, ask.size, ask.account, wait_s, started=started, entered_s=entered_s)

    def _use(self, account: str) -> _Use:
        use = self._accounts.get(account)
        if use is None:
            use = self._accounts[account] = _Use(Level(self._from_s), Level(self._from_s))
        return use


def _closed(use: _Use, end_s: int) -> Use:
    return Use(
        allocated=use.allocated.area(end_s),
        unallocated=use.unallocated.area(end_s),
        loading=use.loading,
        idle=use.idle,
        lost=use.lost,
        preemptions=use.preemptions,
    )


__all__ = ["Measures", "Series", "Use", "measure"]
