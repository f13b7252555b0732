"""What a cycle orders while one account alone has work that waits, and nobody else could be concerned: it starts.

Then there is no other account to be compared with: funded work comes first, and inside an account priority, submit time
and id decide. A start of one who holds no reservation looks at what is free and soon free, and at reservations; when
no host drains and nothing is reserved, what is free is all of it. So neither use, nor shares beyond what makes work
funded, nor who runs changes what is ordered, as long as all of it fits.
"""

from collections.abc import Iterable
from typing import NamedTuple

from gpuledger.policy.placement import Placement, Room
from gpuledger.policy.state import PendingWorkload, WorkClass


class Lone(NamedTuple):
    """A start.

    Args:
        workload: Who starts.
        placement: Where.
        klass: As what.
    """

    workload: str
    placement: Placement
    klass: WorkClass


def alone(
    waiting: Iterable[PendingWorkload], room: Room, at_s: int, *, is_funded: bool, keeps_after_s: int = 0
) -> tuple[Lone, ...] | None:
    """Return the starts that are all that ``run_cycle`` orders, in its order; None when only a cycle can say.

    Args:
        waiting: All that waits, of one account, on a cluster without reservations and hosts that drain.
        room: What its hosts have free; it stays as it is.
        at_s: The instant of the cycle.
        is_funded: Whether shares are above 0 all along the path of the account.
        keeps_after_s: Once unallocated work has waited for so long, hosts are kept for it; 0 for never.
    """
    queue = sorted(
        (not (is_funded and one.minimum_runtime_s > 0), -one.priority, one.submitted_at_s, one.workload, one)
        for one in waiting
    )
    if len(queue) > 1:
        if sum(one.gpus_milli for *_, one in queue) > room.free_milli:
            return None
        room = room.copy()
    found: list[Lone] = []
    for is_unallocated, _, _, _, one in queue:
        placement = room.fit(one.gpus_milli, one.gpu_model)
        if placement is None or one.eligible_at_s > at_s:
            return None
        if len(queue) > 1:
            if is_unallocated and 0 < keeps_after_s <= at_s - one.eligible_at_s:
                return None
            room.take(placement)
        found.append(Lone(one.workload, placement, "unallocated" if is_unallocated else "allocated"))
    return tuple(found)
