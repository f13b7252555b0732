"""When a workload would start if nobody did anything: the production cycle, run forward over the events that are known.

What is known are protection ends, declared limits, reservations, orders to leave and instants of eligibility. Between
two of them a cycle would decide what the one before decided. Nobody submits, cancels or fails; a run without a declared
limit goes on until the policy takes its GPUs. What comes of it is an estimate, never a promise.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gpuledger.policy.cycle import Action, Cycle, run_cycle
from gpuledger.policy.state import (
    ClusterState,
    PendingWorkload,
    PolicyConfig,
    Reservation,
    ReservationKind,
    RunId,
    RunningRun,
    WorkClass,
)
from gpuledger.policy.tree import Capacity, Tree, build_tree

WORK_MAX = 200_000
STEPS_MAX = 200
"""Cycles that one forecast may take: fewer of them where each has much to decide."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What came of looking ahead.

    Args:
        starts_at_s: The instant of the cycle that starts the workload; None when none of those looked at does.
        seen_until_s: The instant of the last cycle that was looked at.
        reserved: The reservation under which it starts or waits, as the last cycle left it.
    """

    starts_at_s: int | None
    seen_until_s: int
    reserved: Reservation | None = None


def forecast(
    state: ClusterState,
    config: PolicyConfig,
    workload: str,
    *,
    limits_s: Mapping[str, int] | None = None,
    asked: Mapping[str, PendingWorkload] | None = None,
    steps_max: int | None = None,
) -> Forecast:
    """Run cycles forward until a waiting workload starts.

    Args:
        state: The cluster; the workload is pending there.
        config: The knobs.
        workload: The workload.
        limits_s: Workload -> declared limit of each of its runs, where one was declared.
        asked: Workload -> what it asks for when it waits again, of those that run; of others, what they have.
        steps_max: How many cycles to look ahead at most.
    """
    most = steps_max or min(max(WORK_MAX // _size(state), 2), STEPS_MAX)
    ahead = _Ahead(state, config, limits_s or {}, asked or {})
    reserved = None
    for _ in range(most):
        cycle = run_cycle(ahead.state(), config)
        if any(d.workload == workload and d.action is Action.START for d in cycle.decisions):
            return Forecast(cycle.at_s, cycle.at_s, reserved)
        reserved = next((kept for kept in cycle.reservations if kept.workload == workload), None)
        if not ahead.advance(cycle):
            break
    return Forecast(None, ahead.at_s, reserved)


def shares_of(state: ClusterState) -> Tree:
    """Return the tree of a state's accounts and workers, for what its shares say."""
    workers = dict.fromkeys(
        [*(run.account for run in state.running), *(work.account for work in state.pending)], 0
    )
    return build_tree(
        state.accounts, Capacity(healthy_milli=0, window_gpu_ms=0, ahead_gpu_ms=0), running_milli=workers
    )


class _Ahead:
    """The cluster as it goes on, from one known event to the next."""

    def __init__(
        self,
        state: ClusterState,
        config: PolicyConfig,
        limits_s: Mapping[str, int],
        asked: Mapping[str, PendingWorkload] | None = None,
    ) -> None:
        self.at_s = state.at_s
        self._first = state
        self._config = config
        self._limits_s = limits_s
        self._accounts = {account.account: account for account in state.accounts}
        self._pending = {work.workload: work for work in state.pending}
        self._running = {run.id: run for run in state.running}
        self._ends = {run.id: end for run in state.running if (end := self._end(run)) is not None}
        self._asked: dict[RunId, PendingWorkload] = {}
        """What was asked for by those that started meanwhile."""
        self._told = asked or {}
        self._models = {host.host: host.gpu_model for host in state.hosts}
        self._leaves: dict[RunId, int] = {}
        self._reservations = state.reservations
        self._credits = state.credits_gpu_ms
        self._started = 0

    def state(self) -> ClusterState:
        """Return the cluster as it stands."""
        return replace(
            self._first,
            at_s=self.at_s,
            accounts=tuple(self._accounts.values()),
            running=tuple(self._running.values()),
            pending=tuple(self._pending.values()),
            reservations=self._reservations,
            credits_gpu_ms=self._credits,
        )

    def advance(self, cycle: Cycle) -> bool:
        """Carry a cycle out, and go on to the next event; False when none is known."""
        self._reservations = cycle.reservations
        for decision in cycle.decisions:
            if decision.action is Action.START:
                self._start(self._pending.pop(decision.workload), decision.placement or {}, decision.klass)
            elif decision.action is Action.PREEMPT and decision.run is not None:
                run = RunId(decision.workload, decision.run)
                self._leaves.setdefault(run, self.at_s + self._config.grace_s)
        told = {RunId(d.workload, d.run or "") for d in cycle.decisions if d.action is Action.PREEMPT}
        self._leaves = {run: at_s for run, at_s in self._leaves.items() if run in told}
        next_s = min((at_s for at_s in self._events() if at_s > self.at_s), default=None)
        if next_s is None:
            return False
        if self._credits or any(row.credit is not None for row in cycle.allocations):
            went_s = next_s - self.at_s
            self._credits = {
                row.account: row.credit.after(went_s) for row in cycle.allocations if row.credit is not None
            }
        self.at_s = next_s
        for run in [run for run, at_s in self._ends.items() if at_s <= next_s]:
            self._ask_less(self._gone(run))
        for run in [run for run, at_s in self._leaves.items() if at_s <= next_s]:
            self._requeue(self._gone(run))
        return True

    def _events(self) -> Iterator[int]:
        yield from self._leaves.values()
        yield from self._ends.values()
        yield from (run.safe_until_s(self._config.quantum_s) for run in self._running.values())
        yield from (run.protected_until_s for run in self._running.values())
        yield from (work.eligible_at_s for work in self._pending.values())
        yield from (kept.at_s for kept in self._reservations if kept.kind is ReservationKind.BOUND)

    def _start(self, work: PendingWorkload, placement: Mapping[str, int], klass: WorkClass | None) -> None:
        self._started += 1
        name, klass = f"~{self._started}", klass or "unallocated"
        run, hold_gpu_ms = work.begun(name, self.at_s, klass=klass, placement=placement, config=self._config)
        self._running[run.id] = run
        self._asked[run.id] = work
        end = self._end(run)
        if end is not None:
            self._ends[run.id] = end
        account = self._accounts.get(work.account)
        if account is not None:
            self._accounts[work.account] = account.holding(hold_gpu_ms)

    def _end(self, run: RunningRun) -> int | None:
        """Return when a run ends as it declared; one that is there beyond its limit may end at any moment."""
        limit_s = self._limits_s.get(run.workload)
        return None if limit_s is None else max(run.started_at_s + limit_s, self.at_s + 1)

    def _ask_less(self, run: RunningRun) -> None:
        """Take a run that is over from what its account asks for: what credits issue rests on that."""
        account = self._accounts.get(run.account)
        if account is not None and run.klass == "allocated":
            left_milli = max(account.demand_milli - run.gpus_milli, 0)
            self._accounts[run.account] = replace(account, demand_milli=left_milli)

    def _gone(self, run: RunId) -> RunningRun:
        self._ends.pop(run, None)
        self._leaves.pop(run, None)
        return self._running.pop(run)

    def _requeue(self, run: RunningRun) -> None:
        """Let a run wait again for what it asked for; where nobody said what, for what it had."""
        asked = self._asked.pop(run.id, None) or self._told.get(run.workload)
        if asked is not None:
            self._pending.setdefault(run.workload, replace(asked, eligible_at_s=self.at_s))
            return
        models = {self._models.get(host) for host in run.placement}
        again = PendingWorkload(
            workload=run.workload,
            account=run.account,
            gpus_milli=run.gpus_milli,
            submitted_at_s=run.started_at_s,
            eligible_at_s=self.at_s,
            priority=run.priority,
            gpu_model=models.pop() if len(models) == 1 else None,
            minimum_runtime_s=max(run.protected_until_s - run.started_at_s, 0)
            if run.klass == "allocated"
            else 0,
        )
        self._pending.setdefault(run.workload, again)


def _size(state: ClusterState) -> int:
    return len(state.pending) + len(state.running) + 1
