"""Fair-share order: who is served next.

At every level of the tree siblings are compared by

    ratio = (used + open holds) / (entitled over the window + entitled over the protection cap ahead)

lowest first, and the walk goes down the tree. Before the ratio counts the floor: a sibling that waits while
it runs below (1 - alpha) of its present entitlement comes first, so that an account back from a long idle
time catches up without taking everything. After the ratio come the larger shortfall in GPU-time, the account
whose eligible workload is oldest, and the path. A share of 0 sorts last. Ratios are compared by
cross-multiplication of integers.

Work without funding (minimum runtime 0, or a share of 0 on its path) comes after all funded work, by least
unallocated use / share at every level.
"""

import heapq
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

from gpuledger.policy.state import PER_MILLE, PendingWorkload, PolicyConfig, WorkClass
from gpuledger.policy.tree import Node, Tree

_NEVER = 1 << 62
"""Later than any instant: the age of an account in which nothing waits."""


class Tier(IntEnum):
    """What is compared before any ratio."""

    BELOW_FLOOR = 0
    BY_RATIO = 1
    NOT_ENTITLED = 2
    """Entitled to nothing yet, in window and ahead: its ratio does not exist."""
    SHARE_ZERO = 3


class Standing(NamedTuple):
    """Where one account stood among its siblings when a turn was decided.

    Args:
        account: The path.
        used: Numerator of its ratio.
        entitled: Denominator of its ratio; 0 when it has none. Only the quotient has a meaning.
        tier: What was compared before the ratio.
    """

    account: str
    used: int
    entitled: int
    tier: Tier


class Turn(NamedTuple):
    """A workload's place in the order.

    Args:
        workload: The workload.
        klass: ``allocated`` when it is funded, else ``unallocated``.
        position: 1 for the head of the queue.
        chain: Standings from its root down to its leaf, with the work ahead of it counted as if started.
    """

    workload: PendingWorkload
    klass: WorkClass
    position: int
    chain: tuple[Standing, ...]


def order_leaves(tree: Tree, config: PolicyConfig) -> tuple[str, ...]:
    """Return the leaves, next to be served first, as the walk down the tree meets them."""
    return tuple(_walk(_allocated(tree, config)))


def order_workloads(tree: Tree, pending: Iterable[PendingWorkload], config: PolicyConfig) -> tuple[Turn, ...]:
    """Return the workloads in the order in which they are to start.

    One workload is picked at a time. What it will hold (GPUs x minimum runtime, up to the cap) is added to
    the use of its account and of every ancestor before the next is picked, so accounts take turns. The
    account is compared before its workload: a gang may carry it past its siblings, and it waits longer
    afterwards.

    Args:
        tree: The tree; it has the account of every workload.
        pending: Eligible workloads, in any order.
        config: The knobs.
    """
    queues: dict[WorkClass, list[PendingWorkload]] = {"allocated": [], "unallocated": []}
    for workload in pending:
        queues[class_of(tree, workload)].append(workload)
    turns: list[Turn] = []
    contenders: dict[WorkClass, _Contender] = {
        "allocated": _allocated(tree, config),
        "unallocated": _unallocated(tree),
    }
    for klass, top in contenders.items():
        queue = queues[klass]
        _enqueue(tree, top, queue)
        placed: set[str] = set()
        for _ in queue:
            turns.append(_next_turn(top, klass, len(turns) + 1, config, placed))
    return tuple(turns)


def class_of(tree: Tree, workload: PendingWorkload) -> WorkClass:
    """Return ``allocated`` when the workload is funded: a minimum runtime, and shares all along its path."""
    funded = workload.minimum_runtime_s > 0 and tree.nodes[tree.leaf_path(workload.account)].funded
    return "allocated" if funded else "unallocated"


def floor_milli(node: Node, tree: Tree, config: PolicyConfig) -> int:
    """Return the GPUs below which a node that waits comes first: (1 - alpha) of its present entitlement.

    Running GPUs are whole milli-GPU, so they are below the exact floor when they are below its ceiling.
    """
    kept_permille = PER_MILLE - config.floor_alpha_permille
    return math.ceil(node.portion * tree.healthy_milli * kept_permille / PER_MILLE)


class _Contender:
    """A node in the comparison with its siblings; it changes as turns are taken below it.

    ``entitled`` is brought to one common denominator, ``scale``, per sibling set, so that siblings' ratios
    are compared by multiplying integers. ``base`` is what the shortfall is counted from.
    """

    __slots__ = (
        "ages",
        "base",
        "children",
        "entitled",
        "floor_milli",
        "heap",
        "oldest_s",
        "path",
        "queue",
        "running_milli",
        "scale",
        "share",
        "tier",
        "used",
        "waits",
    )

    def __init__(
        self, node: Node, *, used: int, entitled: int, scale: int = 1, base: int = 0, floor_milli: int = 0
    ) -> None:
        self.path = node.path
        self.share = node.share
        self.used = used
        self.entitled = entitled
        self.scale = scale
        self.base = base
        self.floor_milli = floor_milli
        self.running_milli = node.running_milli
        self.oldest_s = _NEVER if node.oldest_s is None else node.oldest_s
        self.waits = node.demand_milli > node.running_milli
        self.children: list[_Contender] = []
        self.heap: list[_Contender] = []
        self.queue: list[PendingWorkload] = []
        self.ages: list[PendingWorkload] = []
        self.tier = self._find_tier()

    def __lt__(self, other: "_Contender") -> bool:
        """Say whether this sibling is served before the other."""
        if self.tier != other.tier:
            return self.tier < other.tier
        if self.tier <= Tier.BY_RATIO:
            mine, theirs = self.used * other.entitled, other.used * self.entitled
            if mine != theirs:
                return mine < theirs
        mine, theirs = self.base - self.used * self.scale, other.base - other.used * other.scale
        if mine != theirs:
            return mine > theirs
        return (self.oldest_s, self.path) < (other.oldest_s, other.path)

    def standing(self) -> Standing:
        """Return the comparison's figures as they are now."""
        return Standing(self.path, self.used * self.scale, self.entitled, self.tier)

    def expect(self, *, gpu_ms: int, gpus_milli: int, placed: set[str]) -> None:
        """Count a workload below this node as if it had started."""
        self.used += gpu_ms
        self.running_milli += gpus_milli
        while self.ages and self.ages[-1].workload in placed:
            self.ages.pop()
        self.renew()

    def renew(self) -> None:
        """Bring age and tier up to date with what still waits."""
        self.waits = bool(self.ages)
        self.oldest_s = self.ages[-1].eligible_at_s if self.ages else _NEVER
        self.tier = self._find_tier()

    def _find_tier(self) -> Tier:
        if not self.share:
            return Tier.SHARE_ZERO
        if not self.entitled:
            return Tier.NOT_ENTITLED
        if self.waits and self.running_milli < self.floor_milli:
            return Tier.BELOW_FLOOR
        return Tier.BY_RATIO


def _allocated(tree: Tree, config: PolicyConfig) -> _Contender:
    """Return the tree as contenders for funded starts."""

    def grow(contender: _Contender, node: Node) -> _Contender:
        scale = math.lcm(*(child.entitled_with_ahead.denominator for child in node.children))
        for child in node.children:
            entitled = int(child.entitled_with_ahead * scale)
            below = _Contender(
                child,
                used=child.used_gpu_ms,
                entitled=entitled,
                scale=scale,
                base=entitled,
                floor_milli=floor_milli(child, tree, config),
            )
            contender.children.append(grow(below, child))
        return contender

    return grow(_Contender(tree.root, used=0, entitled=1), tree.root)


def _unallocated(tree: Tree) -> _Contender:
    """Return the tree as contenders for unallocated starts: use / share, no floor."""

    def grow(node: Node) -> _Contender:
        contender = _Contender(node, used=node.unallocated_gpu_ms, entitled=node.share)
        contender.children.extend(grow(child) for child in node.children)
        return contender

    return grow(tree.root)


def _walk(contender: _Contender) -> Iterator[str]:
    for child in sorted(contender.children):
        if child.children:
            yield from _walk(child)
        else:
            yield child.path


def _enqueue(tree: Tree, top: _Contender, workloads: Iterable[PendingWorkload]) -> None:
    """Hang the workloads on their leaves, and their ages on every node above, oldest last."""
    oldest_first = sorted(workloads, key=lambda w: (w.eligible_at_s, w.workload))
    waiting: dict[str, list[PendingWorkload]] = defaultdict(list)
    for workload in reversed(oldest_first):
        waiting[tree.leaf_path(workload.account)].append(workload)

    def hang(contender: _Contender) -> None:
        if contender.children:
            for child in contender.children:
                hang(child)
            contender.heap = [child for child in contender.children if child.waits]
            heapq.heapify(contender.heap)
            below = (child.ages for child in contender.children)
            contender.ages = list(
                heapq.merge(*below, key=lambda w: (w.eligible_at_s, w.workload), reverse=True)
            )
        else:
            contender.ages = waiting.get(contender.path, [])
            contender.queue = sorted(contender.ages, key=_inside_an_account, reverse=True)
        contender.renew()

    hang(top)


def _inside_an_account(workload: PendingWorkload) -> tuple[int, int, str]:
    return (-workload.priority, workload.submitted_at_s, workload.workload)


def _next_turn(
    top: _Contender, klass: WorkClass, position: int, config: PolicyConfig, placed: set[str]
) -> Turn:
    """Walk down to the next workload and count it on every node of the way."""
    way = [top]
    while way[-1].heap:
        way.append(way[-1].heap[0])
    workload = way[-1].queue.pop()
    turn = Turn(workload, klass, position, tuple(contender.standing() for contender in way[1:]))
    placed.add(workload.workload)
    expected_s = min(workload.minimum_runtime_s, config.protection_cap_s) or config.quantum_s
    for contender in way:
        contender.expect(
            gpu_ms=workload.gpus_milli * expected_s, gpus_milli=workload.gpus_milli, placed=placed
        )
    for above, contender in itertools.pairwise(way):
        if contender.waits:
            heapq.heapreplace(above.heap, contender)
        else:
            heapq.heappop(above.heap)
    return turn
