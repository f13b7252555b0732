"""Books kept from facts: what a ledger that was told the same story would tell a cycle. Pure.

A production cycle is told a ``ClusterState``, which ``policy.reading`` reads from the ledger. Here it is kept up to
date fact by fact, so that a look costs what is there now and not what has been; that both say the same is tested
against a real ledger. Two things are known here sooner or better than there: what a failed host gives back is credited
at once, and how much of a run is on which of its hosts is remembered rather than inferred.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import assert_never

from gpuledger.events.incident import CREDIT_CAP_S
from gpuledger.kernel.accounts import share_unless_set
from gpuledger.kernel.amounts import WEIGHT_ONE
from gpuledger.policy.cycle import Cycle
from gpuledger.policy.entitlement import entitled_to
from gpuledger.policy.memory import Memory
from gpuledger.policy.ordering import Turnout
from gpuledger.policy.placement import HostState, Placement, Room, model_of
from gpuledger.policy.state import (
    AccountState,
    ClusterState,
    PendingWorkload,
    PolicyConfig,
    Reservation,
    RunningRun,
    WorkClass,
)
from gpuledger.simulator.books_forest import Forest, forest_of, inner_of
from gpuledger.simulator.books_queue import Queue
from gpuledger.simulator.books_sums import Credits, Holds, Past, past_of
from gpuledger.simulator.books_traffic import Traffic
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
from gpuledger.simulator.scenario import AccountSpec, HostSpec

FORESTS_MAX = 64
"""So many trees are kept; which inner accounts have work of their own seldom changes."""


class Books:
    """What the policy has to know of a cluster, kept from what happens there.

    Args:
        cluster: The name of the cluster.
        hosts: What is installed from the beginning on.
        accounts: The program tree; it stays as it is. Who asks and is not listed is taken for one without a share of
            its own that was there from the beginning.
        config: How far the policy looks back, and the protection cap.
        start_s: When it begins; before it there was nothing.
    """

    def __init__(
        self,
        cluster: str,
        hosts: Iterable[HostSpec],
        accounts: Iterable[AccountSpec],
        config: PolicyConfig,
        start_s: int,
    ) -> None:
        self._cluster = cluster
        self._config = config
        self._hosts = _Hosts(hosts, past_of(config)(), start_s)
        self._shares = {spec.account: spec.share for spec in accounts}
        self._inner = inner_of(self._shares)
        self._forests: dict[frozenset[str], Forest] = {}
        self._jobs: dict[str, Job] = {}
        self._running: dict[str, RunningRun] = {}
        self._traffic = Traffic[RunningRun]()
        """The runs that came and went."""
        self._queue = Queue()
        self._asked: Counter[str] | None = None
        """What waiting work asks for by account; None when hosts changed since it was counted."""
        self._use: dict[tuple[str, WorkClass], Past] = {}
        self._workers: Counter[str] = Counter()
        """How many runs each account has, those of each class."""
        self._charged_milli: Counter[str] = Counter()
        self._holds = Holds()
        self._credits = Credits()
        self._before: Cycle | None = None

    @property
    def reservations(self) -> tuple[Reservation, ...]:
        """What the newest cycle keeps for whom."""
        return () if self._before is None else self._before.reservations

    @property
    def room(self) -> Room:
        """What is free on the hosts that take runs. Only to be looked at."""
        return self._hosts.room

    def only_waiting(self) -> Collection[PendingWorkload]:
        """Return all that waits, if something does and all of it is work of one account; else nothing."""
        return self._queue.of_one_account()

    def is_funded(self, account: str) -> bool:
        """Say whether work of an account is charged, if its minimum runtime is above 0."""
        return account in self._forest(self._inner & {account}).funded

    def told(self, fact: Fact) -> None:
        """Take note of what happened."""
        match fact:
            case Submitted(at_s=at_s, job=job):
                self._join(job.account)
                self._jobs[job.job] = job
                self._wait(job, at_s)
            case Cancelled(job=name):
                self._wait_no_more(name)
                self._jobs.pop(name, None)
            case Started():
                self._start(fact)
            case Left():
                self._leave(fact)
            case HostChanged(at_s=at_s, host=host, condition=condition):
                self._hosts.change(at_s, host, condition)
                self._queue.change(self._spelt)
                self._asked = None
            case Told() | UserAsked() | Reserved():
                pass
            case _:
                assert_never(fact)

    def decided(self, cycle: Cycle) -> None:
        """Keep what the next cycle is told of one."""
        self._before = cycle

    def turnout(self) -> Turnout:
        """Return who waits or runs otherwise than when this was last asked."""
        left, begun = self._traffic.told()
        return self._queue.turnout()._replace(left=left, begun=begun)

    def state(
        self, at_s: int, saved_s: Mapping[str, int] | None = None, *, has_queue: bool = True
    ) -> ClusterState | None:
        """Return what a cycle at an instant is told; None while every host is down: there is no cycle then.

        Args:
            at_s: The instant; not before that of the look before.
            saved_s: Up to when the runs of some jobs have saved their work.
            has_queue: Whether it is told who waits; not for whoever asks for the turnout.
        """
        if not self._hosts.states:
            return None
        self._save(saved_s or {})
        memory = Memory.of(self._config, at_s)
        capacity = self._hosts.past.units(memory)
        return ClusterState(
            cluster=self._cluster,
            at_s=at_s,
            healthy_milli=self._hosts.healthy_milli,
            capacity_window_gpu_ms=memory.rounded(capacity),
            accounts=self._accounts(memory, capacity),
            running=tuple(self._running.values()),
            pending=tuple(self._queue.pending.values()) if has_queue else (),
            hosts=self._hosts.states,
            reservations=self.reservations,
            shared_milli=self._hosts.healthy_milli,
            largest_host_milli=self._hosts.largest_milli,
            credits_gpu_ms=self._division(at_s),
        )

    def _join(self, account: str) -> None:
        """List an account that nobody listed, with the share of one that nobody set a share for."""
        if account not in self._shares:
            self._shares[account] = share_unless_set(account)
            self._inner = inner_of(self._shares)
            self._forests.clear()

    def _wait(self, job: Job, at_s: int) -> None:
        waits = PendingWorkload(
            workload=job.job,
            account=job.account,
            gpus_milli=job.gpus_milli,
            submitted_at_s=job.submitted_s,
            eligible_at_s=at_s,
            priority=job.priority,
            minimum_runtime_s=self._config.protected_s(job.minimum_runtime_s),
            gpu_model=job.gpu_model,
            weight_permille=WEIGHT_ONE,
        )
        waits = self._spelt(waits)
        self._queue.join(waits)
        self._ask(waits, 1)

    def _wait_no_more(self, name: str) -> None:
        waited = self._queue.leave(name)
        if waited is not None:
            self._ask(waited, -1)

    def _ask(self, waits: PendingWorkload, sign: int) -> None:
        """Count what funded work asks for that some hosts could hold, unless all is to be counted anew."""
        if self._asked is None or not waits.minimum_runtime_s:
            return
        if self._hosts.could_hold(waits.gpus_milli, waits.gpu_model):
            self._asked[waits.account] += sign * waits.gpus_milli

    def _asked_milli(self) -> Mapping[str, int]:
        """Return account -> what its waiting work asks for; of accounts that ask for nothing, 0 or nothing."""
        if self._asked is None:
            self._asked = Counter()
            for waits in self._queue.pending.values():
                self._ask(waits, 1)
        return self._asked

    def _spelt(self, waits: PendingWorkload) -> PendingWorkload:
        """Return the workload with its GPU model as hosts spell it, where one of them has it."""
        model = self._hosts.spelt(self._jobs[waits.workload].gpu_model)
        return waits if model == waits.gpu_model else replace(waits, gpu_model=model)

    def _start(self, fact: Started) -> None:
        job = self._jobs[fact.job]
        self._wait_no_more(fact.job)
        protected_s = self._config.protected_s(job.minimum_runtime_s)
        if fact.klass == "allocated":
            protected_s = fact.protected_s
        run = RunningRun(
            workload=fact.job,
            run=str(fact.run),
            account=job.account,
            gpus_milli=sum(fact.placement.values()),
            started_at_s=fact.at_s,
            protected_until_s=fact.at_s + protected_s,
            klass=fact.klass,
            placement=fact.placement,
            priority=job.priority,
        )
        self._running[fact.job] = run
        self._traffic.come(fact.job, run)
        self._hosts.take(fact.placement)
        self._count(run, fact.at_s, 1)
        if run.klass == "allocated" and protected_s:
            self._holds.open(fact.job, run.account, run.gpus_milli, run.protected_until_s)

    def _leave(self, fact: Left) -> None:
        run = self._running.pop(fact.job)
        self._traffic.go(fact.job, run)
        self._hosts.give(run.placement)
        self._count(run, fact.at_s, -1)
        self._holds.release(fact.job)
        if fact.why is Departure.HOST_FAILED and run.klass == "allocated":
            saved_s = run.started_at_s + (fact.loading_s + fact.kept_s if fact.kept_s else 0)
            since_s = max(saved_s, fact.at_s - CREDIT_CAP_S)
            self._credits.give(run.account, run.gpus_milli, since_s, fact.at_s)
        if fact.requeued:
            self._wait(self._jobs[fact.job], fact.at_s)
        else:
            del self._jobs[fact.job]

    def _count(self, run: RunningRun, at_s: int, sign: int) -> None:
        used = self._use.get((run.account, run.klass))
        if used is None:
            used = self._use[run.account, run.klass] = past_of(self._config)()
        used.change(at_s, sign * run.gpus_milli)
        self._workers[run.account] += sign
        if run.klass == "allocated":
            self._charged_milli[run.account] += sign * run.gpus_milli

    def _save(self, saved_s: Mapping[str, int]) -> None:
        for job, at_s in saved_s.items():
            run = self._running.get(job)
            if run is not None and run.checkpointed_at_s != at_s:
                saved = self._running[job] = replace(run, checkpointed_at_s=at_s)
                self._traffic.go(job, run)
                self._traffic.come(job, saved)

    def _division(self, at_s: int) -> dict[str, int]:
        """Return the credits that the cycle before left, and what came of them since: through a quantum at most."""
        before = self._before
        if before is None or self._config.division == "deficit":
            return {}
        since_s = min(at_s - before.at_s, self._config.quantum_s)
        return {
            row.account: row.credit.after(since_s) for row in before.allocations if row.credit is not None
        }

    def _accounts(self, memory: Memory, capacity: int) -> tuple[AccountState, ...]:
        use, held, credits_ = self._used(memory), self._holds.at(memory.end_s), self._credits.units(memory)
        asked = self._asked_milli()
        working = {account for account, _ in use} | {
            account for account, runs in self._workers.items() if runs
        }
        forest = self._forest(
            frozenset(self._inner & (working | {account for account, milli in asked.items() if milli}))
        )
        weighted, found, charged_milli = capacity * WEIGHT_ONE, [], self._charged_milli
        for path, share in forest.shares.items():
            held_gpu_ms = held.get(path, 0)
            charged = max(use.get((path, "allocated"), 0) - credits_.get(path, 0), 0)
            part = forest.parts.get(path)
            demand_milli = charged_milli.get(path, 0)
            if path in forest.funded:
                demand_milli += asked.get(path, 0)
            found.append(
                AccountState(
                    account=path,
                    share=share,
                    used_gpu_ms=memory.rounded(charged) + held_gpu_ms,
                    held_gpu_ms=held_gpu_ms,
                    entitled_gpu_ms=None
                    if part is None
                    else entitled_to(part, weighted, memory, per_unit=WEIGHT_ONE),
                    unallocated_gpu_ms=memory.rounded(use.get((path, "unallocated"), 0)),
                    demand_milli=demand_milli,
                )
            )
        return tuple(found)

    def _used(self, memory: Memory) -> dict[tuple[str, WorkClass], int]:
        """Return what was used as far as it is remembered, in units; who used nothing is absent."""
        found = {key: past.units(memory) for key, past in self._use.items()}
        return {key: units for key, units in found.items() if units}

    def _forest(self, working: frozenset[str]) -> Forest:
        """Return the tree while these inner accounts have work of their own."""
        if working not in self._forests:
            if len(self._forests) >= FORESTS_MAX:
                self._forests.clear()
            self._forests[working] = forest_of(self._shares, self._inner, working)
        return self._forests[working]


class _Hosts:
    """The hosts of a cluster as they stand, and their healthy GPUs over time.

    Args:
        hosts: What is installed.
        past: Where healthy milli-GPU are summed up.
        start_s: Since when all of them are there, healthy.
    """

    def __init__(self, hosts: Iterable[HostSpec], past: Past, start_s: int) -> None:
        self._specs = {spec.host: spec for spec in sorted(hosts, key=lambda spec: spec.host)}
        self._condition = dict.fromkeys(self._specs, HostCondition.HEALTHY)
        self._taken: Counter[str] = Counter()
        self.past = past
        self.largest_milli = max((spec.gpus_milli for spec in self._specs.values()), default=None)
        self.healthy_milli = sum(spec.gpus_milli for spec in self._specs.values())
        self.past.change(start_s, self.healthy_milli)
        self._look()

    def change(self, at_s: int, host: str, condition: HostCondition) -> None:
        """Let a host be in another condition from an instant on."""
        was = self._condition[host] is HostCondition.HEALTHY
        self._condition[host] = condition
        change = ((condition is HostCondition.HEALTHY) - was) * self._specs[host].gpus_milli
        self.healthy_milli += change
        self.past.change(at_s, change)
        self._look()

    def take(self, placement: Placement) -> None:
        """Count GPUs as occupied."""
        self._taken.update(placement)
        self.room.take(placement)

    def give(self, placement: Placement) -> None:
        """Count GPUs as free again, on the hosts that are there."""
        self._taken.subtract(placement)
        self.room.give(placement)

    def could_hold(self, gpus_milli: int, gpu_model: str | None) -> bool:
        """Say whether a gang fits when nothing runs."""
        asked = gpus_milli, gpu_model
        if asked not in self._fits:
            self._fits[asked] = self._empty.fit(gpus_milli, gpu_model) is not None
        return self._fits[asked]

    def _look(self) -> None:
        self.states = tuple(
            HostState(
                host=spec.host,
                gpus_milli=spec.gpus_milli,
                gpu_model=spec.gpu_model,
                draining=condition is HostCondition.DRAINING,
            )
            for spec in self._specs.values()
            if (condition := self._condition[spec.host]) is not HostCondition.DOWN
        )
        self.spelt = model_of(host.gpu_model for host in self.states)
        self._empty = Room(self.states)
        self.room = Room(self.states, [self._taken])
        self._fits: dict[tuple[int, str | None], bool] = {}
