"""A cycle for whoever only carries it out: its orders and reservations, without those who merely wait.

Who waits on changes nothing for others (``policy.sparse``), and is not looked at; what accounts are issued is left out.
What is ordered is what ``run_cycle`` orders on the same state, to the last word.
"""

from gpuledger.kernel.collecting import without_cycles
from gpuledger.policy.blocks import Blocks, Spot, in_blocks
from gpuledger.policy.contenders import allocated, unallocated
from gpuledger.policy.cycle import Cycle, parted, tree_of
from gpuledger.policy.fair_share import class_of, entries, entry_of
from gpuledger.policy.outcomes import Action
from gpuledger.policy.preemption import Preemption
from gpuledger.policy.sparse import walk_sparsely
from gpuledger.policy.state import ClusterState, PolicyConfig, WorkClass
from gpuledger.policy.yard import Yard


def ordered(state: ClusterState, config: PolicyConfig) -> Cycle:
    """Run the policy once, for its orders.

    Returns:
        The cycle with the decisions to start and to leave alone, in their order, all reservations, and no allocations.

    Raises:
        Refused: When the state contradicts itself.
    """
    with without_cycles():  # as of run_cycle
        return _ordered(state, config)


def _ordered(state: ClusterState, config: PolicyConfig) -> Cycle:
    yard = Yard(state, config.quantum_s)
    queue, _ = parted(state, yard)
    tree = tree_of(state, queue, config)
    preemption = Preemption(tree, state, yard, config)
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
