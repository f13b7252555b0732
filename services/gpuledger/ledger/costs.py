"""What a workload cost so far: the net of what is posted for it. Pure."""

import datetime as dt
from collections.abc import Iterable
from typing import NamedTuple

from gpuledger.ledger.charges import CHARGE, CREDIT, PHYSICAL, UNALLOCATED, Key


class Cost(NamedTuple):
    """GPU-time booked for a workload, physical, in gpu_ms; what was given back is not taken off the charge."""

    charged_gpu_ms: int
    unallocated_gpu_ms: int
    credited_gpu_ms: int


def add_up(posted: Iterable[tuple[Key, int]], to: dt.date) -> Cost:
    """Return the cost of a workload.

    Args:
        posted: Net amounts by key.
        to: The last day that counts, in the organisation's zone.
    """
    sums = {CHARGE: 0, UNALLOCATED: 0, CREDIT: 0}
    for key, amount in posted:
        if key.commodity == PHYSICAL and key.code in sums and key.day <= to:
            sums[key.code] += amount
    return Cost(sums[CHARGE], sums[UNALLOCATED], sums[CREDIT])
