"""What a workload cost up to an instant: the physical time of its runs, as the ledger charges it. Pure.

Physical time follows from the facts alone, so that what stands in the postings at a tick is what is worked out here for
its instant; for any other instant postings are cut by days, and would not tell.
"""

from typing import NamedTuple

from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger.charges import CHARGE, CREDIT, PHYSICAL, UNALLOCATED, desired
from gpuledger.ledger.segments import History

_DAYS = Calendar()
"""Sums over days are the same in any zone."""


class Cost(NamedTuple):
    """GPU-time booked for a workload, physical, in gpu_ms; what was given back is not taken off the charge."""

    charged_gpu_ms: int
    unallocated_gpu_ms: int
    credited_gpu_ms: int


def cost_of(history: History, at_s: int, ticked_s: int | None) -> tuple[Cost, int]:
    """Return what is booked for a workload up to an instant, and what its open runs used since that is not, in gpu_ms.

    Args:
        history: What follows from the facts up to the instant.
        at_s: The instant.
        ticked_s: Where the book's clock stands; None before its first tick.
    """
    booked = _sums(history, None if ticked_s is None else min(at_s, ticked_s))
    used = _sums(history, at_s)
    return booked, sum(used[:2]) - sum(booked[:2])


def _sums(history: History, until_s: int | None) -> Cost:
    sums = {CHARGE: 0, UNALLOCATED: 0, CREDIT: 0}
    for key, amount in desired(history, _DAYS, ticked_s=until_s).items():
        if key.commodity == PHYSICAL and key.code in sums:
            sums[key.code] += amount
    return Cost(sums[CHARGE], sums[UNALLOCATED], sums[CREDIT])
