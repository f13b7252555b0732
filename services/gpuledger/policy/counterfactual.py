"""What would have to be otherwise for a waiting workload to start now: one named obstacle, as small as it can be.

Each answer was tried: the production cycle was run on the state without the obstacle, and started the workload, or
promised it GPUs that others were told to leave, so that it starts when the grace is over. And it is the least of its
kind: with a run, a workload or a host more left in the way, or a unit of use less forgotten, the cycle did not. Kinds
of obstacles, in the order in which they are told:

- *eligibility*: it may not start before an instant (others may be in the way besides, which are named with it);
- *runs*: these runs hold the GPUs;
- *use*: its account used too much of the window;
- *ahead*: these workloads come first;
- *gpus*: so many GPUs more would have to be free, on hosts that are taken last of those that do as well.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from gpuledger.kernel.amounts import GPU_MILLI, GPU_MS_PER_GPU_HOUR
from gpuledger.policy.cycle import Cycle, run_cycle
from gpuledger.policy.incremental import Looks
from gpuledger.policy.placement import HostState
from gpuledger.policy.places import place_runs
from gpuledger.policy.state import (
    ClusterState,
    PendingWorkload,
    PolicyConfig,
    RunId,
    RunningRun,
)
from gpuledger.policy.trials import TRIES_MAX, Exhausted, Outcome, Trial

USE_UNIT_GPU_MS = GPU_MS_PER_GPU_HOUR // 10
"""Use is told in tenths of a GPU-hour."""

FREE_HOST = "~free"
"""How hosts are named that are not there: behind others, which of two that do as well is taken goes by name."""


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
        hosts: On how many hosts more; of hosts that do as well these are taken last, as their names sort.
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


class Found(NamedTuple):
    """What keeps a workload from starting now.

    Args:
        changes: Each alone lets it start.
        left_out: The kinds of obstacle that were not looked for to the end: the queue is too long for so many cycles.
    """

    changes: tuple[Counterfactual, ...] = ()
    left_out: tuple[Obstacle, ...] = ()


def counterfactuals(
    state: ClusterState, config: PolicyConfig, workload: str, *, tries_max: int = TRIES_MAX
) -> Found:
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
        return Found()
    looks = Looks(state, config, workload)
    first = Trial(looks, workload, tries_max)
    cycle = run_cycle(state, config)
    if first.outcome(cycle) is Outcome.START:
        return Found()
    eligible = work.eligible_at_s <= state.at_s
    if not eligible:
        state = _eligible(state, workload)
        work = replace(work, eligible_at_s=state.at_s)
        cycle = run_cycle(state, config)
        if first.outcome(cycle) is Outcome.START:
            return Found((Counterfactual(obstacle=Obstacle.ELIGIBILITY),))
        looks = Looks(state, config, workload)
    kinds: dict[Obstacle, Callable[[Trial, ClusterState, PendingWorkload, Cycle], Counterfactual | None]] = {
        Obstacle.RUNS: partial(_runs, config.quantum_s),
        Obstacle.USE: _use,
        Obstacle.AHEAD: _ahead,
        Obstacle.GPUS: _gpus,
    }
    found: list[Counterfactual] = []
    left_out: list[Obstacle] = []
    for kind, look in kinds.items():
        try:
            answer = look(Trial(looks, workload, tries_max), state, work, cycle)
        except Exhausted:
            left_out.append(kind)
            continue
        if answer is not None:
            found.append(replace(answer, eligible=not eligible))
    return Found(tuple(found), tuple(left_out))


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


def _runs(
    quantum_s: int, trial: Trial, state: ClusterState, work: PendingWorkload, cycle: Cycle
) -> Counterfactual | None:
    """Name runs: those on what is reserved for it if they do, else those that may leave first."""
    kept = next((r for r in cycle.reservations if r.workload == work.workload), None)
    places = place_runs(state.running, state.hosts) if state.hosts else {}

    def leaves_last(run: RunningRun) -> tuple[int, bool, RunId]:
        return max(run.safe_until_s(quantum_s), state.at_s), run.klass == "allocated", run.id

    in_order = [run.id for run in sorted(state.running, key=leaves_last)]
    change = partial(_without_runs, state)
    if kept is not None and places:
        there = [run for run in in_order if not kept.placement.keys().isdisjoint(places[run])]
        least = trial.least(there, change, seeming=True)
        if least is not None:
            return Counterfactual(obstacle=Obstacle.RUNS, runs=least)
    least = trial.least(in_order, change, seeming=True)
    return None if least is None else Counterfactual(obstacle=Obstacle.RUNS, runs=least)


def _ahead(trial: Trial, state: ClusterState, work: PendingWorkload, cycle: Cycle) -> Counterfactual | None:
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
            return _told(trial, state, Counterfactual(obstacle=Obstacle.AHEAD, workloads=least))
    return None


def _use(trial: Trial, state: ClusterState, work: PendingWorkload, cycle: Cycle) -> Counterfactual | None:
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
    return _told(trial, state, Counterfactual(obstacle=Obstacle.USE, account=work.account, gpu_ms=amount))


def _gpus(trial: Trial, state: ClusterState, work: PendingWorkload, cycle: Cycle) -> Counterfactual | None:
    """Say how many GPUs more would have to be free: on part of a host if that does, else on whole ones."""
    waits_in_turn = any(d.workload == work.workload and "position" in d.numbers for d in cycle.decisions)
    if state.hosts and waits_in_turn:
        found = _least_gpus(trial.seems_to, state, work)
        if found is None or not trial.does(_with_gpus(state, found)):
            found = None
        elif found.hosts > 1:
            size_milli = found.gpus_milli // found.hosts
            fewer = replace(found, gpus_milli=found.gpus_milli - size_milli, hosts=found.hosts - 1)
            found = None if trial.does(_with_gpus(state, fewer)) else found
        if found is not None:
            return found
    return _least_gpus(trial.does, state, work)


def _least_gpus(
    does: Callable[[ClusterState], bool], state: ClusterState, work: PendingWorkload
) -> Counterfactual | None:
    everything_milli = sum(w.gpus_milli for w in state.pending)
    whole_milli = -(-work.gpus_milli // GPU_MILLI) * GPU_MILLI
    if not state.hosts:
        size_milli, model = GPU_MILLI, None
        most = -(-(everything_milli + sum(run.gpus_milli for run in state.running)) // size_milli)
    else:
        alike = [host for host in state.hosts if work.gpu_model in (None, host.gpu_model)]
        largest = max(alike or state.hosts, key=lambda host: (host.gpus_milli, host.host))
        size_milli, model = largest.gpus_milli, work.gpu_model or largest.gpu_model
        part = Counterfactual(obstacle=Obstacle.GPUS, gpus_milli=whole_milli, hosts=1, gpu_model=model)
        if whole_milli <= size_milli and does(_with_gpus(state, part)):
            return part
        most = len(state.pending) + -(-everything_milli // size_milli)

    def more(count: int) -> Counterfactual:
        hosts = count if state.hosts else 1
        return Counterfactual(
            obstacle=Obstacle.GPUS, gpus_milli=count * size_milli, hosts=hosts, gpu_model=model
        )

    low, high = 0, 1
    while not does(_with_gpus(state, more(high))):
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if does(_with_gpus(state, more(middle))) else (middle, high)
    return more(high)


def _with_gpus(state: ClusterState, found: Counterfactual) -> ClusterState:
    return _with_more_free(state, found.gpus_milli, found.hosts, found.gpu_model)


def _told(trial: Trial, state: ClusterState, found: Counterfactual) -> Counterfactual:
    """Note what comes of an answer, a start or a promise."""
    return replace(found, outcome=trial.comes_of(without(state, trial.workload, found)))


def _eligible(state: ClusterState, workload: str) -> ClusterState:
    def moved(work: PendingWorkload) -> PendingWorkload:
        return replace(work, eligible_at_s=state.at_s) if work.workload == workload else work

    return replace(state, pending=tuple(map(moved, state.pending)))


def _without_runs(state: ClusterState, runs: Sequence[RunId]) -> ClusterState:
    # Where nobody said where a run is, it stays where it was taken to be while others are taken away.
    is_guessed = state.hosts and not all(run.placement for run in state.running)
    places: Mapping[RunId, Mapping[str, int]] = place_runs(state.running, state.hosts) if is_guessed else {}
    gone = set(runs)
    return replace(
        state,
        running=tuple(
            replace(run, placement=places[run.id]) if is_guessed and not run.placement else run
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
