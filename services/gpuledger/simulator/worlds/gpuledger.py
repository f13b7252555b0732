"""The production policy on a simulated cluster: books kept from facts, production cycles, their decisions as orders.

There is no second policy here. A cycle comes when the leader of a cluster would run one (``policy.leading``): at each
fact that wakes it, and at each full interval. Of one instant there is one cycle.
"""

from collections import Counter
from collections.abc import Sequence
from heapq import heappop, heappush

from gpuledger.policy.alone import alone
from gpuledger.policy.cycle import Action, Cycle, WorkClass, run_cycle
from gpuledger.policy.ordering import Ordering
from gpuledger.policy.placement import Placement
from gpuledger.simulator.books import Books
from gpuledger.simulator.facts import Cancelled, Fact, HostChanged, HostCondition, Left, Started, Submitted
from gpuledger.simulator.scenario import Scenario
from gpuledger.simulator.worlds.protocol import Cluster, Orders, Start
from gpuledger.simulator.worlds.settings import settings_of

NAME = "gpuledger"
SETTINGS = {"gap_s": 0}
"""What a scenario may set under ``worlds: gpuledger:``, and what it is otherwise.

- ``gap_s``: the least time from one cycle to the next that an event asks for.
"""


class Gpuledger:
    """The world of the production policy.

    Settings, under ``worlds: gpuledger:`` of a scenario: ``gap_s``, the least time from one cycle to the next that an
    event asks for; what happens in between is decided at once. A leader waits for a second, which is the least that
    there is between two instants.

    Args:
        scenario: The cluster, its accounts, and the knobs of the policy.
        _seed: It draws nothing.

    Raises:
        Refused: When a setting is not known, or below 0.
    """

    name = NAME

    def __init__(self, scenario: Scenario, _seed: int = 0) -> None:
        self._gap_s = max(settings_of(scenario, NAME, SETTINGS)["gap_s"], 1)
        self._every_s = scenario.cycle_s
        self._config = scenario.policy
        # Credits of one cycle are told to the next with what each account was issued.
        self._ordering = Ordering(scenario.policy) if scenario.policy.division == "deficit" else None
        self._books = Books(
            scenario.cluster, scenario.hosts, scenario.accounts, scenario.policy, scenario.start_s
        )
        self._decided_s = scenario.start_s - self._gap_s
        self._due_s = scenario.start_s
        self._is_woken = False
        self._told: dict[str, None] = {}
        """Whom the newest cycle told to leave; nobody else is under way."""
        self._draining: set[str] = set()
        self._begun: list[str] = []
        """Whose runs have begun, and are not among those that save their work yet."""
        self._saves: list[tuple[int, str, int]] = []
        """When runs save their work next: the instant, the job, the number of its run."""

    def told(self, fact: Fact) -> None:
        """Take note of what happened."""
        self._books.told(fact)
        self._is_woken = self._is_woken or isinstance(fact, Submitted | Cancelled | Left | HostChanged)
        if isinstance(fact, Started):
            self._begun.append(fact.job)
        if isinstance(fact, HostChanged):
            self._draining.discard(fact.host)
            if fact.condition is HostCondition.DRAINING:
                self._draining.add(fact.host)

    def decide(self, cluster: Cluster) -> Orders:
        """Run a cycle when one is due, and say what it orders."""
        at_s = cluster.at_s
        self._catch_up(at_s)
        rested_s = self._decided_s + self._gap_s
        if at_s < self._due_s and not (self._is_woken and at_s >= rested_s):
            wake_s = min(self._due_s, rested_s) if self._is_woken else self._due_s
            return Orders(reserved=self._reserved(cluster), wake_s=wake_s)
        self._is_woken = False
        self._decided_s, self._due_s = at_s, (at_s // self._every_s + 1) * self._every_s
        if self._is_idle(cluster):
            return Orders(reserved={})
        starts = self._alone(cluster)
        if starts:
            return Orders(starts=starts, reserved={}, wake_s=self._due_s)
        cycle = self._cycle(cluster)
        if cycle is None:
            return Orders(reserved=self._reserved(cluster), wake_s=self._due_s)
        return self._orders(cycle, cluster)

    def _is_idle(self, cluster: Cluster) -> bool:
        """Say whether a cycle has nothing to order, nor the next ones until something happens.

        Nobody waits, and nothing else is under way.
        """
        return not cluster.waiting and self._is_quiet()

    def _is_quiet(self) -> bool:
        """Say whether no host is to be emptied, nothing is reserved, and nobody was told to leave who could stay now.

        Where GPUs are divided by credits these move on with each cycle, whoever waits.
        """
        busy = self._draining or self._told or self._books.reservations
        return not busy and self._config.division == "deficit"

    def _alone(self, cluster: Cluster) -> list[Start]:
        """Return the starts of an account that waits alone, where a cycle orders nothing else (``policy.alone``)."""
        waiting = self._books.only_waiting()
        if not waiting or not self._is_quiet():
            return []
        is_funded = self._books.is_funded(next(iter(waiting)).account)
        found = alone(
            waiting,
            self._books.room,
            cluster.at_s,
            is_funded=is_funded,
            keeps_after_s=self._config.unallocated_keeps_after_s,
        )
        return [self._started(*lone, cluster) for lone in found or ()]

    def _catch_up(self, at_s: int) -> None:
        """Count the cycles at full intervals that had nothing to order and did not come."""
        missed_s = (at_s - 1) // self._every_s * self._every_s
        if missed_s >= self._due_s:
            self._decided_s, self._due_s = missed_s, missed_s + self._every_s

    def _cycle(self, cluster: Cluster) -> Cycle | None:
        """Run a cycle; None while every host is down, when the policy has none."""
        at_s = cluster.at_s
        state = self._books.state(at_s, self._saved_s(cluster), has_queue=self._ordering is None)
        if state is None:
            return None
        cycle = (
            run_cycle(state, self._config)
            if self._ordering is None
            else self._ordering.cycle(state, self._books.turnout())
        )
        self._books.decided(cycle)
        return cycle

    def _saved_s(self, cluster: Cluster) -> dict[str, int]:
        """Return up to when those runs have saved their work that did so since this was last asked."""
        at_s, saved_s = cluster.at_s, dict[str, int]()
        for name in self._begun:
            run = cluster.running.get(name)
            if run is not None and run.job.checkpoint_s is not None:
                heappush(self._saves, (run.loaded_s + run.job.checkpoint_s, name, run.run))
        self._begun.clear()
        while self._saves and self._saves[0][0] <= at_s:
            _, name, number = heappop(self._saves)
            run = cluster.running.get(name)
            if run is not None and run.run == number and run.job.checkpoint_s is not None:
                saved_s[name] = run.checkpointed_s(at_s)
                heappush(self._saves, (saved_s[name] + run.job.checkpoint_s, name, number))
        return saved_s

    def _orders(self, cycle: Cycle, cluster: Cluster) -> Orders:
        """Read decisions as orders: each cycle says everything anew, and what it does not repeat is void."""
        starts: list[Start] = []
        before, told = self._told, dict[str, None]()
        for decision in cycle.decisions:
            if decision.action is Action.START:
                klass = decision.klass or "unallocated"
                starts.append(self._started(decision.workload, decision.placement or {}, klass, cluster))
            elif decision.action is Action.PREEMPT:
                told[decision.workload] = None
        running, self._told = cluster.running, told
        under_way = (job for job in before if job in running and running[job].leaves_s is not None)
        return Orders(
            starts=starts,
            leave=[job for job in told if running[job].leaves_s is None],
            stay=[job for job in under_way if job not in told],
            reserved=self._reserved(cluster, starts),
            wake_s=self._due_s,
        )

    def _started(self, name: str, placement: Placement, klass: WorkClass, cluster: Cluster) -> Start:
        job = cluster.waiting[name].job
        protected_s = self._config.protected_s(job.minimum_runtime_s) if klass == "allocated" else 0
        return Start(job=name, placement=placement, klass=klass, protected_s=protected_s)

    def _reserved(self, cluster: Cluster, starts: Sequence[Start] = ()) -> dict[str, int]:
        """Return what is kept free: what is reserved on each host, as far as nobody occupies it."""
        reserved: dict[str, int] = {}
        for kept in self._books.reservations:
            for host, milli in kept.placement.items():
                reserved[host] = reserved.get(host, 0) + milli
        taken = Counter[str]()
        for start in starts:
            taken.update(start.placement)
        return {
            host: kept_milli
            for host, milli in reserved.items()
            if (kept_milli := min(milli, cluster.hosts[host].free_milli - taken[host])) > 0
            and cluster.hosts[host].condition is HostCondition.HEALTHY
        }
