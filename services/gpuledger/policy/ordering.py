"""Cycles for whoever only carries them out, one after the other: what stands between two of them is kept. Pure.

A cycle costs what came and went since the one before. Who waits on changes nothing for others (``policy.sparse``), and
is not looked at; what accounts are issued is left out, and so are sentences and figures: for these one would have to
know how many are before a workload. What is ordered is what ``run_cycle`` orders on the same state.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from gpuledger.kernel.collecting import without_cycles
from gpuledger.policy.backlog import Backlog, line_of
from gpuledger.policy.blocks import Blocks, Spot, in_blocks
from gpuledger.policy.contenders import allocated, unallocated
from gpuledger.policy.cycle import Cycle, tree_with
from gpuledger.policy.fair_share import class_of, entry_of
from gpuledger.policy.lines import Ask
from gpuledger.policy.occupancy import Occupancy
from gpuledger.policy.outcomes import Action
from gpuledger.policy.preemption import Preemption
from gpuledger.policy.runs import Runs
from gpuledger.policy.sparse import Unfunded, walk_sparsely
from gpuledger.policy.state import ClusterState, PendingWorkload, PolicyConfig, RunningRun, WorkClass
from gpuledger.policy.yard import Yard

T = TypeVar("T")


class Turnout(NamedTuple):
    """Who waits or runs otherwise than at the cycle before.

    Args:
        gone: Who waits no more, or not as before: what was told of them.
        come: Who waits from now on.
        left: The runs that are there no more, or not as before: what was told of them.
        begun: The runs that are there from now on.
    """

    gone: tuple[PendingWorkload, ...]
    come: tuple[PendingWorkload, ...]
    left: tuple[RunningRun, ...] = ()
    begun: tuple[RunningRun, ...] = ()


class _Known(NamedTuple):
    """What is kept between two cycles.

    Args:
        at_s: The instant of the newest.
        occupancy: Who is where.
        runs: The same by account.
        backlog: Who waits.
    """

    at_s: int
    occupancy: Occupancy
    runs: Runs
    backlog: Backlog


class Ordering:
    """The policy for one cluster, cycle after cycle.

    Values that are told again are the same objects where nothing changed about them: those that are not cost as much as
    new ones.

    Args:
        config: The knobs.
    """

    def __init__(self, config: PolicyConfig) -> None:
        self._config = config
        self._running: dict[int, RunningRun] = {}
        """Who runs, by identity."""
        self._pending: dict[int, PendingWorkload] = {}
        """Who waits, by identity."""
        self._known: _Known | None = None

    def cycle(self, state: ClusterState, turnout: Turnout | None = None) -> Cycle:
        """Run the policy once, for its orders.

        Args:
            state: The cluster.
            turnout: Who came and went of those that wait and of those that run, for whoever knows it; who waits in
                the state is not looked at then, and who runs is looked at only where hosts are others than before.

        Returns:
            The cycle with the decisions to start and to leave alone, in their order and without words, all
            reservations, and no allocations.

        Raises:
            Refused: When the state contradicts itself.
        """
        with without_cycles():  # as of run_cycle
            return self._cycle(state, turnout or self._turnout(state))

    def _cycle(self, state: ClusterState, turnout: Turnout) -> Cycle:
        config = self._config
        known = self._known = self._follow(state, turnout)
        backlog = known.backlog
        tree = tree_with(state, known.runs.allocated_milli, backlog.accounts, backlog.oldest_s(), config)
        waiting = backlog.by_leaf(tree)
        queue = in_blocks(allocated(tree, config), line_of(waiting["allocated"]))
        unfunded = Unfunded(
            set[Ask]().union(*(pile.kinds for pile in waiting["unallocated"].values())),
            lambda: in_blocks(unallocated(tree), line_of(waiting["unallocated"])),
        )
        spots: list[Spot] = []
        for kept in state.reservations:
            holder = backlog.placed(kept.workload)
            if holder is not None and class_of(tree, holder) == "allocated":  # nothing is kept for others
                leaf, entry = tree.leaf_path(holder.account), entry_of(holder, "allocated", config)
                spot = queue.find(leaf, entry)
                assert spot is not None  # noqa: S101 - it is in the queue
                spots.append(spot)
        yard = Yard(state, config.quantum_s, known.occupancy)
        preemption = Preemption(tree, state, yard, config, known.runs)
        queues: dict[WorkClass, Blocks | Unfunded] = {"allocated": queue, "unallocated": unfunded}
        walk, decided = walk_sparsely(
            queues, {"allocated": spots}, state, yard, preemption, config, has_words=False
        )
        return Cycle(
            cluster=state.cluster,
            at_s=state.at_s,
            supply_milli=state.healthy_milli,
            allocations=(),
            decisions=tuple(decision for decision in decided if decision.action is not Action.WAIT),
            reservations=walk.reservations(),
        )

    def _turnout(self, state: ClusterState) -> Turnout:
        """Return who came and went: who is the same object waits or runs as before."""
        return Turnout(*_difference(self._pending, state.pending), *_difference(self._running, state.running))

    def _follow(self, state: ClusterState, turnout: Turnout) -> _Known:
        """Bring what is known up to date."""
        known = self._known
        _follow_by_identity(self._running, turnout.left, turnout.begun)
        _follow_by_identity(self._pending, turnout.gone, turnout.come)
        left, begun = turnout.left, turnout.begun
        if known is None or state.at_s < known.at_s or not known.occupancy.follow(state, left, begun):
            occupancy = Occupancy(state, self._config.quantum_s)
            runs = Runs(state.running, state.at_s, self._config.quantum_s)
            backlog = Backlog(self._config, occupancy)
            backlog.follow((), self._pending.values(), state.at_s)
            return _Known(state.at_s, occupancy, runs, backlog)
        known.runs.follow(left, begun, state.at_s)
        known.backlog.follow(turnout.gone, turnout.come, state.at_s)
        return known._replace(at_s=state.at_s)


def _follow_by_identity(there: dict[int, T], gone: Iterable[T], come: Iterable[T]) -> None:
    """Bring values by identity up to date; they are held on to, so that no other value has the identity of one."""
    for value in gone:
        del there[id(value)]
    there.update((id(value), value) for value in come)


def _difference(before: dict[int, T], now: Iterable[T]) -> tuple[tuple[T, ...], tuple[T, ...]]:
    """Return the values of before that are there no more, and those that were not there."""
    values = tuple(now)
    by_identity = dict(zip(map(id, values), values, strict=True))
    if by_identity.keys() == before.keys():
        return (), ()
    return _missing(before, by_identity), _missing(by_identity, before)


def _missing(values: dict[int, T], there: dict[int, T]) -> tuple[T, ...]:
    """Return the values that are not there, in their order; mostly there are none or one."""
    missing = values.keys() - there.keys()
    if len(missing) > 1:  # a set has no order
        return tuple([value for key, value in values.items() if key in missing])
    return tuple([values[key] for key in missing])
