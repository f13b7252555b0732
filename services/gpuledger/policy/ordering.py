"""Cycles for whoever only carries them out, one after the other: what stands between two of them is kept. Pure.

A cycle costs what came and went since the one before; what it orders is what ``ordered`` orders on the same state, to
the last word, for that is the first cycle of one that keeps nothing yet.
"""

from collections.abc import Iterable
from typing import TypeVar

from gpuledger.kernel.collecting import without_cycles
from gpuledger.policy.blocks import Blocks, Spot, in_blocks
from gpuledger.policy.contenders import allocated, unallocated
from gpuledger.policy.cycle import Cycle, parted, tree_of
from gpuledger.policy.fair_share import class_of, entries, entry_of
from gpuledger.policy.occupancy import Occupancy
from gpuledger.policy.outcomes import Action
from gpuledger.policy.preemption import Preemption
from gpuledger.policy.runs import Runs
from gpuledger.policy.sparse import walk_sparsely
from gpuledger.policy.state import ClusterState, PolicyConfig, RunningRun, WorkClass
from gpuledger.policy.yard import Yard

T = TypeVar("T")


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
        self._at_s = 0
        self._occupancy: Occupancy | None = None
        self._runs: Runs | None = None

    def cycle(self, state: ClusterState) -> Cycle:
        """Run the policy once, for its orders.

        Returns:
            The cycle with the decisions to start and to leave alone, in their order, all reservations, and no
            allocations.

        Raises:
            Refused: When the state contradicts itself.
        """
        with without_cycles():  # as of run_cycle
            return self._cycle(state)

    def _cycle(self, state: ClusterState) -> Cycle:
        config = self._config
        occupancy, runs = self._follow(state)
        yard = Yard(state, config.quantum_s, occupancy)
        queue, _ = parted(state, yard)
        tree = tree_of(state, queue, config)
        preemption = Preemption(tree, state, yard, config, runs)
        waiting = entries(tree, queue, config)
        queues: dict[WorkClass, Blocks] = {
            "allocated": in_blocks(allocated(tree, config), waiting["allocated"]),
            "unallocated": in_blocks(unallocated(tree), waiting["unallocated"]),
        }
        holding = {kept.workload for kept in state.reservations}
        spots = {klass: list[Spot]() for klass in queues}
        for workload in queue if holding else ():
            if workload.workload in holding:
                klass = class_of(tree, workload)
                spot = queues[klass].find(tree.leaf_path(workload.account), entry_of(workload, klass, config))
                assert spot is not None  # noqa: S101 - it is in the queue
                spots[klass].append(spot)
        walk, decided = walk_sparsely(queues, spots, state, yard, preemption, config)
        return Cycle(
            cluster=state.cluster,
            at_s=state.at_s,
            supply_milli=state.healthy_milli,
            allocations=(),
            decisions=tuple(decision for decision in decided if decision.action is not Action.WAIT),
            reservations=walk.reservations(),
        )

    def _follow(self, state: ClusterState) -> tuple[Occupancy, Runs]:
        """Bring what is known of the runs up to date."""
        running, gone, come = _difference(self._running, state.running)
        quantum_s = self._config.quantum_s
        if self._runs is None or state.at_s < self._at_s:
            self._runs = Runs(state.running, state.at_s, quantum_s)
        else:
            self._runs.follow(gone, come, state.at_s)
        if self._occupancy is None or not self._occupancy.follow(state, gone, come):
            self._occupancy = Occupancy(state, quantum_s)
        self._running, self._at_s = running, state.at_s
        return self._occupancy, self._runs


def _difference(before: dict[int, T], now: Iterable[T]) -> tuple[dict[int, T], list[T], list[T]]:
    """Return values by their identity, those of before that are there no more, and those that were not there.

    They are held on to, so that no other value has the identity of one of them.
    """
    values = tuple(now)
    by_identity = dict(zip(map(id, values), values, strict=True))
    gone = [value for key, value in before.items() if key not in by_identity]
    come = [value for key, value in by_identity.items() if key not in before]
    return by_identity, gone, come
