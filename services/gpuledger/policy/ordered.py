"""A cycle for whoever only carries it out: its orders and reservations, without those who merely wait.

Who waits on changes nothing for others (``policy.sparse``), and is not looked at; what accounts are issued is left out.
What is ordered is what ``run_cycle`` orders on the same state, to the last word.
"""

from gpuledger.policy.cycle import Cycle
from gpuledger.policy.ordering import Ordering
from gpuledger.policy.state import ClusterState, PolicyConfig


def ordered(state: ClusterState, config: PolicyConfig) -> Cycle:
    """Run the policy once, for its orders; ``Ordering`` runs one cycle after the other for less.

    Returns:
        The cycle with the decisions to start and to leave alone, in their order, all reservations, and no allocations.

    Raises:
        Refused: When the state contradicts itself.
    """
    return Ordering(config).cycle(state)
