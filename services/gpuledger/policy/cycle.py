"""One cycle of the policy: from the state of a cluster to allocations, decisions and reservations.

A pure function: the same state and configuration give the same cycle, in whatever order accounts, runs, hosts
and workloads are listed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from gpuledger.kernel.collecting import without_cycles
from gpuledger.policy import explain
from gpuledger.policy.contenders import NEVER
from gpuledger.policy.credits import Credit, divide_by_credits
from gpuledger.policy.decisions import Walk
from gpuledger.policy.fair_share import lines, next_milli, order_leaves, turns_of
from gpuledger.policy.issue import issue
from gpuledger.policy.keeping import kept_for, leaves_of
from gpuledger.policy.outcomes import Action, Decision, Shared
from gpuledger.policy.placement import HostState
from gpuledger.policy.preemption import Preemption
from gpuledger.policy.state import (
    AccountState,
    ClusterState,
    PendingWorkload,
    PolicyConfig,
    Reservation,
    ReservationKind,
    RunId,
    RunningRun,
    WorkClass,
)
from gpuledger.policy.tree import Capacity, Tree, build_tree, round_exactly
from gpuledger.policy.yard import Yard

__all__ = [
    "AccountState",
    "Action",
    "Allocation",
    "ClusterState",
    "Cycle",
    "Decision",
    "HostState",
    "PendingWorkload",
    "PolicyConfig",
    "Reservation",
    "ReservationKind",
    "RunId",
    "RunningRun",
    "Shared",
    "WorkClass",
    "run_cycle",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """What one account is owed, used, asks for and is issued.

    Args:
        account: The path; inner nodes carry the sums of their leaves.
        share_ppm: Share of the parent in parts per million.
        used_gpu_ms: Allocated use in the window, open holds included.
        held_gpu_ms: The part of it that is open holds.
        entitled_gpu_ms: Entitlement over the window, rounded so that it sums up the tree.
        par_gpu_ms: What counts as used and as entitled for the time before an account existed; part of neither of them.
        ahead_gpu_ms: Entitlement over the protection cap ahead, rounded likewise.
        ratio_num: Numerator of (used + holds + par) / (entitled + par + ahead), exact.
        ratio_den: Its denominator, exact; 0 when the account is entitled to nothing.
        demand_milli: GPUs of funded work running or eligible.
        issued_milli: GPUs issued now.
        position: Place of a leaf in the order, 1 is served next; None for inner nodes.
        credit: How it stands where GPUs are divided by credits, else None.
    """

    account: str
    share_ppm: int
    used_gpu_ms: int
    held_gpu_ms: int
    entitled_gpu_ms: int
    par_gpu_ms: int
    ahead_gpu_ms: int
    ratio_num: int
    ratio_den: int
    demand_milli: int
    issued_milli: int
    position: int | None
    credit: Credit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """The outcome of one cycle.

    Args:
        cluster: The cluster.
        at_s: The instant of the cycle.
        supply_milli: What was there to issue: the healthy capacity.
        allocations: Every account, ordered by path.
        decisions: The queue in its order, then the runs that have to leave, by id, then the waiting workloads
            outside the queue, by id.
        reservations: What is kept for whom when the cycle is over, by workload; the next cycle is told.
    """

    cluster: str
    at_s: int
    supply_milli: int
    allocations: tuple[Allocation, ...]
    decisions: tuple[Decision | Shared, ...]
    reservations: tuple[Reservation, ...]


def run_cycle(state: ClusterState, config: PolicyConfig) -> Cycle:
    """Run the policy once.

    Raises:
        Refused: When the state contradicts itself (an account listed twice).
    """
    with without_cycles():  # nothing that a cycle makes refers to itself
        return _run_cycle(state, config)


def _run_cycle(state: ClusterState, config: PolicyConfig) -> Cycle:
    yard = Yard(state, config.quantum_s)
    queue, outside = parted(state, yard)
    tree = tree_of(state, queue, config)
    preemption = Preemption(tree, state, yard, config)
    queues = lines(tree, queue, config)
    turns = turns_of(queues)
    holders = turns.of({kept.workload for kept in state.reservations})
    walk = Walk(holders, state, yard, preemption, config)
    decided = tuple(walk.decide(turns, kept_for(leaves_of(queues["unallocated"]), state.at_s, config)))
    return Cycle(
        cluster=state.cluster,
        at_s=state.at_s,
        supply_milli=state.healthy_milli,
        allocations=_allocations(tree, state, config, next_milli(queues["allocated"])),
        decisions=(*decided, *decide_outside(outside, state, yard)),
        reservations=walk.reservations(),
    )


def parted(state: ClusterState, yard: Yard) -> tuple[list[PendingWorkload], list[PendingWorkload]]:
    """Return who takes a place in the queue, and who stays outside: not yet eligible, or larger than any hosts."""
    queue: list[PendingWorkload] = []
    outside: list[PendingWorkload] = []
    possible: dict[tuple[int, str | None], bool] = {}
    for workload in state.pending:
        asked = workload.gpus_milli, workload.gpu_model
        if asked not in possible:
            possible[asked] = yard.is_possible(*asked)
        startable = workload.eligible_at_s <= state.at_s and possible[asked]
        (queue if startable else outside).append(workload)
    return queue, outside


def _is_possible(workload: PendingWorkload, yard: Yard) -> bool:
    return yard.is_possible(workload.gpus_milli, workload.gpu_model)


def tree_of(state: ClusterState, queue: Iterable[PendingWorkload], config: PolicyConfig) -> Tree:
    """Return the accounts of a state with what runs and waits; those known only by their work are added."""
    running: Counter[str] = Counter()
    for run in state.running:
        running[run.account] += run.gpus_milli if run.klass == "allocated" else 0
    oldest: dict[str, int] = {}
    for workload in queue:
        if workload.eligible_at_s < oldest.get(workload.account, NEVER):
            oldest[workload.account] = workload.eligible_at_s
    return tree_with(state, running, {workload.account for workload in state.pending}, oldest, config)


def tree_with(
    state: ClusterState,
    running_milli: Mapping[str, int],
    waiting: Iterable[str],
    oldest_s: Mapping[str, int],
    config: PolicyConfig,
) -> Tree:
    """Return the accounts of a state, of which it is known what runs and waits.

    Args:
        state: The cluster.
        running_milli: GPUs of allocated runs, of every account that runs anything.
        waiting: The accounts of whoever waits, outside the queue too: they have to appear in the tree.
        oldest_s: Since when the oldest is eligible that takes a place in the queue, by account.
        config: The knobs.
    """
    shared_milli = state.healthy_milli if state.shared_milli is None else state.shared_milli
    capacity = Capacity(
        healthy_milli=state.healthy_milli,
        window_gpu_ms=state.capacity_window_gpu_ms,
        ahead_gpu_ms=shared_milli * config.protection_cap_s,
        shared_milli=shared_milli,
    )
    running = {**dict.fromkeys(waiting, 0), **running_milli}
    tree = build_tree(state.accounts, capacity, running_milli=running, oldest_s=oldest_s)
    return (
        tree if config.division == "deficit" else replace(tree, floors_milli=_divided(tree, state, config)[0])
    )


def _divided(
    tree: Tree, state: ClusterState, config: PolicyConfig
) -> tuple[Mapping[str, int], Mapping[str, Credit]]:
    """Return what each node is issued, and how it stands where credits divide."""
    if config.division == "deficit":
        return issue(tree, supply_milli=state.healthy_milli, config=config).issued_milli, {}
    divided, credit = divide_by_credits(
        tree,
        state.healthy_milli,
        state.credits_gpu_ms,
        shared_permille=config.shared_permille,
        quantum_s=config.quantum_s,
    )
    return divided.issued_milli, credit


def _allocations(
    tree: Tree, state: ClusterState, config: PolicyConfig, gangs_milli: Mapping[str, int]
) -> tuple[Allocation, ...]:
    issued, credit = _divided(tree, state, config)
    everyone = (tree.root, *tree.nodes.values())
    entitled = round_exactly(tree, {n.path: n.entitled - n.par_gpu_ms for n in everyone})
    ahead = round_exactly(tree, {n.path: n.ahead for n in everyone})
    positions = {path: place for place, path in enumerate(order_leaves(tree, config, gangs_milli), start=1)}
    return tuple(
        Allocation(
            account=node.path,
            share_ppm=node.share_ppm,
            used_gpu_ms=node.used_gpu_ms - node.par_gpu_ms,
            par_gpu_ms=node.par_gpu_ms,
            held_gpu_ms=node.held_gpu_ms,
            entitled_gpu_ms=entitled[node.path],
            ahead_gpu_ms=ahead[node.path],
            ratio_num=node.ratio[0],
            ratio_den=node.ratio[1],
            demand_milli=node.demand_milli,
            issued_milli=issued[node.path],
            position=positions.get(node.path),
            credit=credit.get(node.path),
        )
        for node in tree.nodes.values()
    )


def decide_outside(
    workloads: Iterable[PendingWorkload], state: ClusterState, yard: Yard
) -> Iterator[Decision]:
    """Decide for what takes no place in the queue: what no hosts here can hold, and what is not yet eligible."""
    for workload in sorted(workloads, key=lambda w: w.workload):
        numbers = {"gpus_milli": workload.gpus_milli}
        if _is_possible(workload, yard):
            numbers["eligible_at_s"] = workload.eligible_at_s
            reason = explain.waits_until_eligible(workload, at_s=state.at_s)
        else:
            numbers["missing_milli"] = max(workload.gpus_milli - state.healthy_milli, 0)
            reason = explain.waits_for_other_hosts(workload, healthy_milli=state.healthy_milli)
        yield Decision(workload=workload.workload, action=Action.WAIT, reason=reason, numbers=numbers)
