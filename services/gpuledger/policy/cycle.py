"""One cycle of the policy: from the state of a cluster to allocations and decisions.

A pure function: the same state and configuration give the same cycle, in whatever order accounts, runs
and workloads are listed. Nothing here preempts, packs hosts or backfills: a head that does not fit holds the
queue.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypedDict

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.policy import explain
from gpuledger.policy.fair_share import Turn, order_leaves, order_workloads
from gpuledger.policy.issue import issue
from gpuledger.policy.state import (
    AccountState,
    ClusterState,
    PendingWorkload,
    PolicyConfig,
    RunningRun,
    WorkClass,
)
from gpuledger.policy.tree import Capacity, Node, Tree, build_tree, round_exactly

__all__ = [
    "AccountState",
    "Action",
    "Allocation",
    "AllocationJson",
    "ClusterState",
    "Cycle",
    "CycleJson",
    "Decision",
    "DecisionJson",
    "PendingWorkload",
    "PolicyConfig",
    "RunningRun",
    "WorkClass",
    "as_json",
    "run_cycle",
]


class Action(StrEnum):
    """What a decision orders."""

    START = "start"
    WAIT = "wait"
    PREEMPT = "preempt"
    """Part of the vocabulary of decisions; this cycle never decides it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """What one account is owed, used, asks for and is issued.

    Args:
        account: The path; inner nodes carry the sums of their leaves.
        share_ppm: Share of the parent in parts per million.
        used_gpu_ms: Allocated use in the window, open holds included.
        held_gpu_ms: The part of it that is open holds.
        entitled_gpu_ms: Entitlement over the window, rounded so that it sums up the tree.
        ahead_gpu_ms: Entitlement over the protection cap ahead, rounded likewise.
        ratio_num: Numerator of (used + holds) / (entitled + ahead), exact.
        ratio_den: Its denominator, exact; 0 when the account is entitled to nothing.
        demand_milli: GPUs of funded work running or eligible.
        issued_milli: GPUs issued now.
        position: Place of a leaf in the order, 1 is served next; None for inner nodes.
    """

    account: str
    share_ppm: int
    used_gpu_ms: int
    held_gpu_ms: int
    entitled_gpu_ms: int
    ahead_gpu_ms: int
    ratio_num: int
    ratio_den: int
    demand_milli: int
    issued_milli: int
    position: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What happens to one waiting workload, and why.

    Args:
        workload: The workload.
        action: What to do.
        reason: One plain sentence or two, with names and numbers.
        numbers: The figures behind the reason, units in their names.
    """

    workload: str
    action: Action
    reason: str
    numbers: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """The outcome of one cycle.

    Args:
        cluster: The cluster.
        at_s: The instant of the cycle.
        supply_milli: What was there to issue: the healthy capacity.
        allocations: Every account, ordered by path.
        decisions: Every waiting workload: the queue in its order, then what is outside the queue, by id.
    """

    cluster: str
    at_s: int
    supply_milli: int
    allocations: tuple[Allocation, ...]
    decisions: tuple[Decision, ...]


def run_cycle(state: ClusterState, config: PolicyConfig) -> Cycle:
    """Run the policy once.

    Raises:
        Refused: When the state contradicts itself (an account listed twice).
    """
    queue = [workload for workload in state.pending if _is_startable(workload, state)]
    tree = _tree(state, queue, config)
    turns = order_workloads(tree, queue, config)
    return Cycle(
        cluster=state.cluster,
        at_s=state.at_s,
        supply_milli=state.healthy_milli,
        allocations=_allocations(tree, state, config),
        decisions=(*_decide(turns, tree, state), *_outside(state)),
    )


def _is_startable(workload: PendingWorkload, state: ClusterState) -> bool:
    return workload.eligible_at_s <= state.at_s and workload.gpus_milli <= state.healthy_milli


def _tree(state: ClusterState, queue: Iterable[PendingWorkload], config: PolicyConfig) -> Tree:
    running: Counter[str] = Counter()
    for run in state.running:
        running[run.account] += run.gpus_milli if run.klass == "allocated" else 0
    # Workloads outside the queue make their account known, too: it has to appear in the tree.
    running.update({workload.account: 0 for workload in state.pending})
    oldest: dict[str, int] = {}
    for workload in queue:
        oldest[workload.account] = min(workload.eligible_at_s, oldest.get(workload.account, state.at_s))
    capacity = Capacity(
        healthy_milli=state.healthy_milli,
        window_gpu_ms=state.capacity_window_gpu_ms,
        ahead_gpu_ms=state.healthy_milli * config.protection_cap_s,
    )
    return build_tree(state.accounts, capacity, running_milli=running, oldest_s=oldest)


def _allocations(tree: Tree, state: ClusterState, config: PolicyConfig) -> tuple[Allocation, ...]:
    issued = issue(tree, supply_milli=state.healthy_milli, config=config).issued_milli
    everyone = (tree.root, *tree.nodes.values())
    entitled = round_exactly(tree, {n.path: n.entitled for n in everyone})
    ahead = round_exactly(tree, {n.path: n.ahead for n in everyone})
    positions = {path: place for place, path in enumerate(order_leaves(tree, config), start=1)}
    return tuple(
        Allocation(
            account=node.path,
            share_ppm=node.share_ppm,
            used_gpu_ms=node.used_gpu_ms,
            held_gpu_ms=node.held_gpu_ms,
            entitled_gpu_ms=entitled[node.path],
            ahead_gpu_ms=ahead[node.path],
            ratio_num=node.used_gpu_ms * node.entitled_with_ahead.denominator,
            ratio_den=node.entitled_with_ahead.numerator,
            demand_milli=node.demand_milli,
            issued_milli=issued[node.path],
            position=positions.get(node.path),
        )
        for node in tree.nodes.values()
    )


def _decide(turns: Iterable[Turn], tree: Tree, state: ClusterState) -> Iterable[Decision]:
    """Start in order what fits; from the first that does not fit on, everything waits."""
    free_milli = state.healthy_milli - sum(run.gpus_milli for run in state.running)
    head: Turn | None = None
    for turn in turns:
        asked_milli = turn.workload.gpus_milli
        numbers = _numbers(turn, free_milli)
        if head is not None:
            missing_milli = head.workload.gpus_milli - free_milli
            numbers["head_missing_milli"] = missing_milli
            reason = explain.waits_behind(turn, head, head_missing_milli=missing_milli)
            yield _decision(turn, Action.WAIT, reason, numbers)
        elif asked_milli <= free_milli:
            yield _decision(turn, Action.START, explain.starts(turn, free_milli=free_milli), numbers)
            free_milli -= asked_milli
        else:
            head = turn
            numbers["reclaimable_milli"] = reclaimable_milli = _reclaimable_milli(tree, state)
            reason = explain.waits_at_head(turn, free_milli=free_milli, reclaimable_milli=reclaimable_milli)
            yield _decision(turn, Action.WAIT, reason, numbers)


def _outside(state: ClusterState) -> Iterable[Decision]:
    """Decide for what takes no place in the queue: larger than the cluster, or not yet eligible."""
    outside = (workload for workload in state.pending if not _is_startable(workload, state))
    for workload in sorted(outside, key=lambda w: w.workload):
        numbers = {"gpus_milli": workload.gpus_milli}
        if workload.gpus_milli > state.healthy_milli:
            numbers["missing_milli"] = workload.gpus_milli - state.healthy_milli
            reason = explain.waits_for_more_hosts(workload, healthy_milli=state.healthy_milli)
        else:
            numbers["eligible_at_s"] = workload.eligible_at_s
            reason = explain.waits_until_eligible(workload, at_s=state.at_s)
        yield Decision(workload=workload.workload, action=Action.WAIT, reason=reason, numbers=numbers)


def _decision(turn: Turn, action: Action, reason: str, numbers: Mapping[str, int]) -> Decision:
    return Decision(workload=turn.workload.workload, action=action, reason=reason, numbers=numbers)


def _numbers(turn: Turn, free_milli: int) -> dict[str, int]:
    numbers = {
        "position": turn.position,
        "gpus_milli": turn.workload.gpus_milli,
        "free_milli": free_milli,
        "missing_milli": max(turn.workload.gpus_milli - free_milli, 0),
    }
    leaf = turn.chain[-1]
    if turn.klass == "allocated" and leaf.entitled:
        numbers["ratio_ppm"] = explain.ratio_millionths(leaf.used, leaf.entitled) or 0
    return numbers


def _reclaimable_milli(tree: Tree, state: ClusterState) -> int:
    """Return the GPUs of runs that nothing protects and that are unallocated or of over-served accounts."""
    return sum(
        run.gpus_milli
        for run in state.running
        if run.is_preemptible(state.at_s)
        and (run.klass == "unallocated" or _is_over_served(tree.nodes[tree.leaf_path(run.account)]))
    )


def _is_over_served(node: Node) -> bool:
    return node.used_gpu_ms > node.entitled_with_ahead


class AllocationJson(TypedDict):
    """An allocation as published."""

    account: str
    share_ppm: int
    used_gpu_ms: int
    entitled_gpu_ms: int
    ratio: str | None
    demand_gpus: int | str
    issued_gpus: int | str


class DecisionJson(TypedDict):
    """A decision as published."""

    workload: str
    action: str
    reason: str
    numbers: dict[str, int]


class CycleJson(TypedDict):
    """A cycle as published."""

    cluster: str
    cycle: str
    supply_gpus: int | str
    allocations: list[AllocationJson]
    decisions: list[DecisionJson]


def as_json(cycle: Cycle, *, cycle_id: str | None = None) -> CycleJson:
    """Return the cycle under its published keys.

    GPUs are integers when whole, else strings with three decimals. A ratio is a string with six decimals,
    half to even, or None for an account that is entitled to nothing.

    Args:
        cycle: The cycle.
        cycle_id: Its name; ``CLUSTER@SECONDS`` unless given.
    """
    return {
        "cluster": cycle.cluster,
        "cycle": cycle_id or f"{cycle.cluster}@{cycle.at_s}",
        "supply_gpus": _gpus_json(cycle.supply_milli),
        "allocations": [
            {
                "account": allocation.account,
                "share_ppm": allocation.share_ppm,
                "used_gpu_ms": allocation.used_gpu_ms,
                "entitled_gpu_ms": allocation.entitled_gpu_ms,
                "ratio": explain.ratio_text(allocation.ratio_num, allocation.ratio_den),
                "demand_gpus": _gpus_json(allocation.demand_milli),
                "issued_gpus": _gpus_json(allocation.issued_milli),
            }
            for allocation in cycle.allocations
        ],
        "decisions": [
            {
                "workload": decision.workload,
                "action": decision.action.value,
                "reason": decision.reason,
                "numbers": dict(decision.numbers),
            }
            for decision in cycle.decisions
        ],
    }


def _gpus_json(gpus_milli: int) -> int | str:
    return explain.gpus_text(gpus_milli) if gpus_milli % GPU_MILLI else gpus_milli // GPU_MILLI
