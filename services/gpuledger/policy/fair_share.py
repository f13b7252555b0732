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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count, repeat

from gpuledger.policy.contenders import Contender, Standing, Tier, allocated, floor_milli, unallocated
from gpuledger.policy.lines import ASK, GPUS_MILLI, NAME, WORKLOAD, Ask, Entry, Line, Queue, line_up
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

    __slots__ = ("_chain", "ask", "before", "entry", "line", "place", "workload")

    def __init__(self, entry: Entry, line: Queue, place: int, before: int) -> None:
        self.entry = entry
        self.workload = entry[WORKLOAD]
        self.ask = entry[ASK]
        self.line = line
        self.place = place
        self.before = before
        self._chain: tuple[Standing, ...] | None = None

    @property
    def klass(self) -> WorkClass:
        """``allocated`` when it is funded, else ``unallocated``."""
        return self.ask[0]

    @property
    def position(self) -> int:
        """1 for the head of the queue."""
        return self.before + self.line.rank_of(self.place) + 1

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
    return tuple(turns_of(lines(tree, pending, config)))


class Turns:
    """The workloads in the order in which they are to start; a turn is made when it is asked for.

    Args:
        lines: The queue of each class, one after the other.
    """

    def __init__(self, lines: Iterable[Line]) -> None:
        self._lines: list[tuple[Line, int]] = []
        before = 0
        for line in lines:
            self._lines.append((line, before))
            before += len(line.entries)

    def __iter__(self) -> Iterator[Turn]:
        """Yield all turns."""
        return (Turn(*where) for where in self.places())

    def places(self) -> Iterator[tuple[Entry, Line, int, int]]:
        """Yield what a turn is made of, for all of them."""
        for line, before in self._lines:
            yield from zip(line.entries, repeat(line), count(), repeat(before), strict=False)

    def of(self, workloads: Collection[str]) -> list[Turn]:
        """Return the turns of some workloads."""
        if not workloads:
            return []
        return [Turn(*where) for where in self.places() if where[0][NAME] in workloads]


def turns_of(queues: Mapping[WorkClass, Line]) -> Turns:
    """Return the turns of the queue of each class, one class after the other."""
    return Turns(queues.values())


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
        "allocated": line_up(allocated(tree, config), _line_of(waiting["allocated"])),
        "unallocated": line_up(unallocated(tree), _line_of(waiting["unallocated"])),
    }


def _line_of(waiting: Mapping[str, Sequence[Entry]]) -> Callable[[Contender], Line]:
    return lambda leaf: Line(leaf, waiting.get(leaf.path, ()))


def entries(
    tree: Tree, pending: Iterable[PendingWorkload], config: PolicyConfig
) -> dict[WorkClass, dict[str, list[Entry]]]:
    """Return the work of each class by leaf, in its order there."""
    waiting: dict[WorkClass, dict[str, list[Entry]]] = {
        "allocated": defaultdict(list),
        "unallocated": defaultdict(list),
    }
    leaves: dict[str, tuple[str, bool]] = {}
    asked: dict[tuple[WorkClass, int, str | None, int, int], tuple[int, Ask]] = {}
    for workload in pending:
        if workload.account not in leaves:
            leaf = tree.leaf_path(workload.account)
            leaves[workload.account] = leaf, tree.nodes[leaf].funded
        leaf, funded = leaves[workload.account]
        klass: WorkClass = "allocated" if funded and workload.minimum_runtime_s > 0 else "unallocated"
        kind = (
            klass, workload.gpus_milli, workload.gpu_model, workload.minimum_runtime_s, workload.weight_permille
        )  # fmt: skip
        found = asked.get(kind)
        if found is None:
            found = asked[kind] = _asked(workload, klass, config)
        waiting[klass][leaf].append(_entry(workload, *found))
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
    return _entry(workload, *_asked(workload, klass, config))


class Entering:
    """Makes entries of many workloads: what those have in common who ask for the same is worked out once.

    Args:
        config: The knobs.
    """

    def __init__(self, config: PolicyConfig) -> None:
        self._config = config
        self._asked: dict[tuple[WorkClass, int, str | None, int, int], tuple[int, Ask]] = {}

    def entry_of(self, workload: PendingWorkload, klass: WorkClass) -> Entry:
        """Return what the function of that name does."""
        kind = (
            klass, workload.gpus_milli, workload.gpu_model, workload.minimum_runtime_s, workload.weight_permille
        )  # fmt: skip
        found = self._asked.get(kind)
        if found is None:
            found = self._asked[kind] = _asked(workload, klass, self._config)
        return _entry(workload, *found)


def _asked(workload: PendingWorkload, klass: WorkClass, config: PolicyConfig) -> tuple[int, Ask]:
    """Return the expected hold of a workload in gpu_ms, and what it asks for; both are those of many."""
    expected_s = config.protected_s(workload.minimum_runtime_s) or config.quantum_s
    ask = (klass, workload.gpus_milli, workload.gpu_model, workload.minimum_runtime_s)
    return workload.counted_gpu_ms(expected_s), ask


def _entry(workload: PendingWorkload, held_gpu_ms: int, ask: Ask) -> Entry:
    return (
        -workload.priority,
        workload.submitted_at_s,
        workload.workload,
        held_gpu_ms,
        workload.gpus_milli,
        workload.eligible_at_s,
        workload,
        ask,
    )


def _walk(contender: Contender) -> Iterator[str]:
    for child in sorted(contender.children):
        if child.children:
            yield from _walk(child)
        else:
            yield child.path
