"""What would have to be otherwise for a waiting workload to start now: one named obstacle, as small as it can be.

Each answer was tried: the production cycle was run on the state without the obstacle, and started the workload, or
promised it GPUs that others were told to leave, so that it starts when the grace is over. And it is the least of its
kind: with a run, a workload or a host more left in the way, or a unit of use less forgotten, the cycle did not. Kinds
of obstacles, in the order in which they are told:

- *eligibility*: it may not start before an instant (others may be in the way besides, which are named with it);
- *runs*: these runs hold the GPUs;
- *use*: its account used too much of the window;
- *ahead*: these workloads come first;
- *gpus*: so many GPUs more would have to be free.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import TypeVar

from gpuledger.kernel.amounts import GPU_MILLI, GPU_MS_PER_GPU_HOUR
from gpuledger.policy.cycle import Action, Cycle, run_cycle
from gpuledger.policy.placement import HostState
from gpuledger.policy.state import (
    ClusterState,
    PendingWorkload,
    PolicyConfig,
    ReservationKind,
    RunId,
    RunningRun,
)
from gpuledger.policy.yard import place_runs

USE_UNIT_GPU_MS = GPU_MS_PER_GPU_HOUR // 10
"""Use is told in tenths of a GPU-hour."""

FREE_HOST = "~free"
"""How hosts are named that are not there."""

TRIES_MAX = 150
"""Cycles that the search for one kind of obstacle may take."""


_T = TypeVar("_T")


class Outcome(StrEnum):
    """What a cycle has for a workload."""

    WAIT = "wait"
    PROMISE = "promise"
    """Runs are told to leave for it: it starts when the grace is over."""
    START = "start"


class Obstacle(StrEnum):
    """What is in the way."""

    ELIGIBILITY = "eligibility"
    RUNS = "runs"
    USE = "use"
    AHEAD = "ahead"
    GPUS = "gpus"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterfactual:
    """One thing without which the workload starts now.

    Args:
        obstacle: What kind of thing.
        outcome: What the cycle has for the workload without it.
        eligible: Whether it was taken to be eligible, too, which it is not yet.
        runs: The runs that hold what it needs, by when protection and quantum end.
        workloads: The workloads that come first.
        account: Whose use of the window.
        gpu_ms: By how much that would have to be less.
        gpus_milli: How many more GPUs would have to be free.
        hosts: On how many hosts more.
        gpu_model: Of which model; None where the hosts of the cluster are not known.
    """

    obstacle: Obstacle
    outcome: Outcome = Outcome.START
    eligible: bool = False
    runs: tuple[RunId, ...] = ()
    workloads: tuple[str, ...] = ()
    account: str | None = None
    gpu_ms: int = 0
    gpus_milli: int = 0
    hosts: int = 0
    gpu_model: str | None = None


def counterfactuals(
    state: ClusterState, config: PolicyConfig, workload: str, *, tries_max: int = TRIES_MAX
) -> tuple[Counterfactual, ...]:
    """Return what keeps a waiting workload from starting now, each verified and the least of its kind.

    Nothing is returned for a workload that does not wait, or that the cycle starts.

    Args:
        state: The cluster, with the workload pending.
        config: The knobs.
        workload: The workload.
        tries_max: How many cycles may be run; kinds that would need more are left out.
    """
    work = next((w for w in state.pending if w.workload == workload), None)
    if work is None:
        return ()
    first = _Trial(config, workload, tries_max)
    cycle = first.cycle(state)
    if first.outcome(cycle) is Outcome.START:
        return ()
    eligible = work.eligible_at_s <= state.at_s
    if not eligible:
        state = _eligible(state, workload)
        work = replace(work, eligible_at_s=state.at_s)
        cycle = first.cycle(state)
        if first.outcome(cycle) is Outcome.START:
            return (Counterfactual(obstacle=Obstacle.ELIGIBILITY),)
    found = []
    for look in (_runs, _use, _ahead, _gpus):
        try:
            answer = look(_Trial(config, workload, tries_max), state, work, cycle)
        except _Exhausted:
            continue
        if answer is not None:
            found.append(replace(answer, eligible=not eligible))
    return tuple(found)


def without(state: ClusterState, workload: str, obstacle: Counterfactual) -> ClusterState:
    """Return the state in which an obstacle is not there, and all else is as it was."""
    if obstacle.eligible or obstacle.obstacle is Obstacle.ELIGIBILITY:
        state = _eligible(state, workload)
    match obstacle.obstacle:
        case Obstacle.ELIGIBILITY:
            return state
        case Obstacle.RUNS:
            return _without_runs(state, obstacle.runs)
        case Obstacle.AHEAD:
            return _without_workloads(state, obstacle.workloads)
        case Obstacle.USE:
            return _with_less_use(state, obstacle.account, obstacle.gpu_ms)
        case Obstacle.GPUS:
            return _with_more_free(state, obstacle.gpus_milli, obstacle.hosts, obstacle.gpu_model)


class _Exhausted(Exception):  # noqa: N818 - no error: one kind of answer is left out
    """No more cycles may be run."""


class _Trial:
    """Runs cycles on changed states, up to a number of them."""

    def __init__(self, config: PolicyConfig, workload: str, tries_max: int) -> None:
        self._config, self._workload, self._left = config, workload, tries_max
        self.needs = Outcome.START
        """What the search is for."""

    def cycle(self, state: ClusterState) -> Cycle:
        """Run one cycle."""
        if not self._left:
            raise _Exhausted
        self._left -= 1
        return run_cycle(state, self._config)

    def outcome(self, cycle: Cycle) -> Outcome:
        """Return what a cycle has for the workload."""
        if any(d.workload == self._workload and d.action is Action.START for d in cycle.decisions):
            return Outcome.START
        promised = (r.workload for r in cycle.reservations if r.kind is ReservationKind.PROMISE)
        return Outcome.PROMISE if self._workload in promised else Outcome.WAIT

    def does(self, state: ClusterState) -> bool:
        """Say whether the workload gets in this state what the search is for."""
        got = self.outcome(self.cycle(state))
        return got is Outcome.START or got is self.needs

    def accept_promises(self, cycle: Cycle) -> None:
        """Search for a promise, too, where the workload has none as it is."""
        if self.outcome(cycle) is Outcome.WAIT:
            self.needs = Outcome.PROMISE

    def answer(self, state: ClusterState, found: Counterfactual) -> Counterfactual:
        """Note what comes of an answer."""
        return replace(found, outcome=self.outcome(self.cycle(without(state, self._workload, found))))

    def least(
        self, items: Sequence[_T], change: Callable[[Sequence[_T]], ClusterState]
    ) -> tuple[_T, ...] | None:
        """Return the items without which it starts, none of which may stay; None where all together do not do.

        The fewest of the first that suffice are looked for, then each that is not needed is put back.
        """
        if not items or not self.does(change(items)):
            return None
        low, high = 0, len(items)
        while high - low > 1:  # all of the first `high` suffice, of the first `low` they do not
            middle = (low + high) // 2
            low, high = (low, middle) if self.does(change(items[:middle])) else (middle, high)
        return self._needed(list(items[:high]), change)

    def _needed(self, chosen: list[_T], change: Callable[[Sequence[_T]], ClusterState]) -> tuple[_T, ...]:
        place, kept_in_a_row = 0, 0
        # Until all were tried since the last one was put back: then no single one can be.
        while kept_in_a_row < len(chosen) > 1:
            place %= len(chosen)
            fewer = chosen[:place] + chosen[place + 1 :]
            if self.does(change(fewer)):
                chosen, kept_in_a_row = fewer, 0
            else:
                place, kept_in_a_row = place + 1, kept_in_a_row + 1
        return tuple(chosen)


def _runs(trial: _Trial, state: ClusterState, work: PendingWorkload, cycle: Cycle) -> Counterfactual | None:
    """Name runs: those on what is reserved for it if they do, else those that may leave first."""
    kept = next((r for r in cycle.reservations if r.workload == work.workload), None)
    places = place_runs(state.running, state.hosts) if state.hosts else {}

    def leaves_last(run: RunningRun) -> tuple[int, bool, RunId]:
        return max(run.protected_until_s, state.at_s), run.klass == "allocated", run.id

    in_order = [run.id for run in sorted(state.running, key=leaves_last)]
    change = partial(_without_runs, state)
    if kept is not None and places:
        there = [run for run in in_order if not kept.placement.keys().isdisjoint(places[run])]
        least = trial.least(there, change)
        if least is not None:
            return Counterfactual(obstacle=Obstacle.RUNS, runs=least)
    least = trial.least(in_order, change)
    return None if least is None else Counterfactual(obstacle=Obstacle.RUNS, runs=least)


def _ahead(trial: _Trial, state: ClusterState, work: PendingWorkload, cycle: Cycle) -> Counterfactual | None:
    """Name workloads: those that keep GPUs reserved if that does, else those before it in the queue."""
    trial.accept_promises(cycle)
    before: list[str] = []
    for decision in cycle.decisions:
        if decision.workload == work.workload:
            break
        before.append(decision.workload)
    change = partial(_without_workloads, state)
    # The last of those that are before it is the first to give way.
    for candidates in ([r.workload for r in cycle.reservations if r.workload != work.workload], before[::-1]):
        least = trial.least(candidates, change)
        if least is not None:
            return trial.answer(state, Counterfactual(obstacle=Obstacle.AHEAD, workloads=least))
    return None


def _use(trial: _Trial, state: ClusterState, work: PendingWorkload, cycle: Cycle) -> Counterfactual | None:
    """Say how much less of the window its own account would have to have used."""
    trial.accept_promises(cycle)
    used = next((a.used_gpu_ms for a in state.accounts if a.account == work.account), 0)
    enough = -(-used // USE_UNIT_GPU_MS)
    if not enough or not trial.does(_with_less_use(state, work.account, enough * USE_UNIT_GPU_MS)):
        return None
    low = 0
    while enough - low > 1:
        middle = (low + enough) // 2
        less = _with_less_use(state, work.account, middle * USE_UNIT_GPU_MS)
        low, enough = (low, middle) if trial.does(less) else (middle, enough)
    amount = min(enough * USE_UNIT_GPU_MS, used)
    return trial.answer(state, Counterfactual(obstacle=Obstacle.USE, account=work.account, gpu_ms=amount))


def _gpus(trial: _Trial, state: ClusterState, work: PendingWorkload, _: Cycle) -> Counterfactual | None:
    """Say how many GPUs more would have to be free: on part of a host if that does, else on whole ones."""
    everything_milli = sum(w.gpus_milli for w in state.pending)
    whole_milli = -(-work.gpus_milli // GPU_MILLI) * GPU_MILLI
    if not state.hosts:
        size_milli, model = GPU_MILLI, None
        most = -(-(everything_milli + sum(run.gpus_milli for run in state.running)) // size_milli)
    else:
        alike = [host for host in state.hosts if work.gpu_model in (None, host.gpu_model)]
        largest = max(alike or state.hosts, key=lambda host: (host.gpus_milli, host.host))
        size_milli, model = largest.gpus_milli, work.gpu_model or largest.gpu_model
        if whole_milli <= size_milli and trial.does(_with_more_free(state, whole_milli, 1, model)):
            return Counterfactual(obstacle=Obstacle.GPUS, gpus_milli=whole_milli, hosts=1, gpu_model=model)
        most = len(state.pending) + -(-everything_milli // size_milli)

    def suffices(hosts: int) -> bool:
        return trial.does(_with_more_free(state, hosts * size_milli, hosts, model))

    low, high = 0, 1
    while not suffices(high):
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    hosts = high if state.hosts else 1
    return Counterfactual(obstacle=Obstacle.GPUS, gpus_milli=high * size_milli, hosts=hosts, gpu_model=model)


def _eligible(state: ClusterState, workload: str) -> ClusterState:
    def moved(work: PendingWorkload) -> PendingWorkload:
        return replace(work, eligible_at_s=state.at_s) if work.workload == workload else work

    return replace(state, pending=tuple(map(moved, state.pending)))


def _without_runs(state: ClusterState, runs: Sequence[RunId]) -> ClusterState:
    # Where nobody said where a run is, it stays where it was taken to be while others are taken away.
    places: Mapping[RunId, Mapping[str, int]] = place_runs(state.running, state.hosts) if state.hosts else {}
    gone = set(runs)
    return replace(
        state,
        running=tuple(
            replace(run, placement=places.get(run.id, run.placement))
            for run in state.running
            if run.id not in gone
        ),
    )


def _without_workloads(state: ClusterState, workloads: Sequence[str]) -> ClusterState:
    gone = set(workloads)
    return replace(
        state,
        pending=tuple(work for work in state.pending if work.workload not in gone),
        reservations=tuple(kept for kept in state.reservations if kept.workload not in gone),
    )


def _with_less_use(state: ClusterState, account: str | None, gpu_ms: int) -> ClusterState:
    changed = []
    for told in state.accounts:
        if told.account == account:
            used = max(told.used_gpu_ms - gpu_ms, 0)
            changed.append(replace(told, used_gpu_ms=used, held_gpu_ms=min(told.held_gpu_ms, used)))
        else:
            changed.append(told)
    return replace(state, accounts=tuple(changed))


def _with_more_free(state: ClusterState, gpus_milli: int, hosts: int, gpu_model: str | None) -> ClusterState:
    if not state.hosts:
        return replace(state, healthy_milli=state.healthy_milli + gpus_milli)
    more = tuple(
        HostState(host=f"{FREE_HOST}{n}", gpus_milli=gpus_milli // hosts, gpu_model=gpu_model or "")
        for n in range(hosts)
    )
    return replace(state, hosts=(*state.hosts, *more))
