"""Fair-share order: who is served next.

At every level of the tree siblings are compared by

    ratio = (used + open holds) / (entitled over the window + entitled over the protection cap ahead)

lowest first, and the walk goes down the tree. Before the ratio counts the floor: a sibling that waits while
it runs below (1 - alpha) of its present entitlement comes first, so that an account back from a long idle
time catches up without taking everything. It lifts nobody beyond the present entitlement: a gang that does not
stay within is compared by ratio. After the ratio come the larger shortfall in GPU-time, the account whose
eligible workload is oldest, and the path. A share of 0 sorts last. Ratios are compared by cross-multiplication
of integers.

Work without funding (minimum runtime 0, or a share of 0 on its path) comes after all funded work, by least
unallocated use / share at every level.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from gpuledger.policy.contenders import Contender, Standing, Tier, allocated, floor_milli, unallocated
from gpuledger.policy.lines import ASK, GPUS_MILLI, WORKLOAD, Entry, Line, Queue, line_up
from gpuledger.policy.state import PendingWorkload, PolicyConfig, WorkClass
from gpuledger.policy.tree import Tree

__all__ = ["Standing", "Tier", "Turn", "class_of", "floor_milli", "order_leaves", "order_workloads"]


class Turn:
    """A workload's place in the order.

    Attributes:
        workload: The workload.
        ask: What it asks for.

    Args:
        entry: The workload and what it asks for.
        line: The queue of its class.
        place: Where that has it.
        before: How many are before the whole queue of its class.
    """

    __slots__ = ("_before", "_chain", "ask", "line", "place", "workload")

    def __init__(self, entry: Entry, line: Queue, place: int, before: int) -> None:
        self.workload = entry[WORKLOAD]
        self.ask = entry[ASK]
        self.line = line
        self.place = place
        self._before = before
        self._chain: tuple[Standing, ...] | None = None

    @property
    def klass(self) -> WorkClass:
        """``allocated`` when it is funded, else ``unallocated``."""
        return self.ask[0]

    @property
    def position(self) -> int:
        """1 for the head of the queue."""
        return self._before + self.line.rank_of(self.place) + 1

    @property
    def chain(self) -> tuple[Standing, ...]:
        """Standings from its root down to its leaf, with the work ahead of it counted as if started."""
        if self._chain is None:
            self._chain = tuple(line.standing(place) for line, place in self.spots())
        return self._chain

    def spots(self) -> list[tuple[Line, int]]:
        """Return the lines from its root down to its leaf, and its place in each."""
        return self.line.spots(self.place)

    @property
    def account(self) -> str:
        """The leaf that it counts at."""
        return self.line.leaf(self.place)[0].contender.path


def order_leaves(
    tree: Tree, config: PolicyConfig, next_milli: Mapping[str, int] | None = None
) -> tuple[str, ...]:
    """Return the leaves, next to be served first, as the walk down the tree meets them.

    Args:
        tree: The tree.
        config: The knobs.
        next_milli: The gang that would be served next, in milli-GPU, by account; without one the floor counts for
            whoever waits below it.
    """
    return tuple(_walk(allocated(tree, config, next_milli)))


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
    return turns_of(lines(tree, pending, config))


def turns_of(queues: Mapping[WorkClass, Line]) -> tuple[Turn, ...]:
    """Return the workloads of the queue of each class, one class after the other."""
    turns: list[Turn] = []
    for line in queues.values():
        before = len(turns)
        turns += [Turn(entry, line, place, before) for place, entry in enumerate(line.entries)]
    return tuple(turns)


def next_milli(line: Line) -> dict[str, int]:
    """Return the gang that would be served next below each account of a queue that has work, in milli-GPU."""
    found = {line.contender.path: line.entries[0][GPUS_MILLI]} if line.entries else {}
    for below in line.below.values():
        found |= next_milli(below)
    return found


def lines(tree: Tree, pending: Iterable[PendingWorkload], config: PolicyConfig) -> dict[WorkClass, Line]:
    """Return the queue of each class, the funded one first."""
    waiting = entries(tree, pending, config)
    return {
        "allocated": line_up(allocated(tree, config), waiting["allocated"]),
        "unallocated": line_up(unallocated(tree), waiting["unallocated"]),
    }


def entries(
    tree: Tree, pending: Iterable[PendingWorkload], config: PolicyConfig
) -> dict[WorkClass, dict[str, list[Entry]]]:
    """Return the work of each class by leaf, in its order there."""
    waiting: dict[WorkClass, dict[str, list[Entry]]] = {
        "allocated": defaultdict(list),
        "unallocated": defaultdict(list),
    }
    leaves: dict[str, tuple[str, bool]] = {}
    for workload in pending:
        if workload.account not in leaves:
            leaf = tree.leaf_path(workload.account)
            leaves[workload.account] = leaf, tree.nodes[leaf].funded
        leaf, funded = leaves[workload.account]
        klass: WorkClass = "allocated" if funded and workload.minimum_runtime_s > 0 else "unallocated"
        waiting[klass][leaf].append(entry_of(workload, klass, config))
    for queues in waiting.values():
        for queue in queues.values():
            queue.sort()
    return waiting


def class_of(tree: Tree, workload: PendingWorkload) -> WorkClass:
    """Return ``allocated`` when the workload is funded: a minimum runtime, and shares all along its path."""
    return "allocated" if tree.is_funded(workload.account, workload.minimum_runtime_s) else "unallocated"


def entry_of(workload: PendingWorkload, klass: WorkClass, config: PolicyConfig) -> Entry:
    """Return a workload with its place in its account, and with what it is expected to hold.

    Inside an account priority decides, then submit time, then id. Expected are its GPUs for its minimum runtime, up to
    the cap; for a quantum without one.
    """
    expected_s = config.protected_s(workload.minimum_runtime_s) or config.quantum_s
    return (
        -workload.priority,
        workload.submitted_at_s,
        workload.workload,
        workload.counted_gpu_ms(expected_s),
        workload.gpus_milli,
        workload.eligible_at_s,
        workload,
        (klass, workload.gpus_milli, workload.gpu_model, workload.minimum_runtime_s),
    )


def _walk(contender: Contender) -> Iterator[str]:
    for child in sorted(contender.children):
        if child.children:
            yield from _walk(child)
        else:
            yield child.path
