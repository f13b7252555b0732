"""What a cycle orders when one workload waits and nobody else could be concerned: where there is room, it starts.

Then there is nobody to be compared with. A start of one who holds no reservation looks at what is free and soon free,
and at reservations; when no run was told to leave, no host drains and nothing is reserved, what is free is all of it.
So neither use, nor shares beyond what makes work funded, nor who runs changes what is ordered.
"""

from typing import NamedTuple

from gpuledger.policy.placement import Placement, Room
from gpuledger.policy.state import PendingWorkload, WorkClass


class Lone(NamedTuple):
    """The only order of a cycle.

    Args:
        placement: Where the workload starts.
        klass: As what it starts.
    """

    placement: Placement
    klass: WorkClass


def alone(waits: PendingWorkload, room: Room, at_s: int, *, is_funded: bool) -> Lone | None:
    """Return the start that is all that ``run_cycle`` orders while one workload waits; None when only a cycle can say.

    Args:
        waits: The only one that waits, on a cluster without reservations, hosts that drain, and runs that an earlier
            cycle told to leave.
        room: What its hosts have free.
        at_s: The instant of the cycle.
        is_funded: Whether shares are above 0 all along the path of its account.
    """
    if waits.eligible_at_s > at_s:
        return None
    placement = room.fit(waits.gpus_milli, waits.gpu_model)
    if placement is None:
        return None
    return Lone(placement, "allocated" if is_funded and waits.minimum_runtime_s > 0 else "unallocated")
