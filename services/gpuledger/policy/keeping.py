"""For whom hosts are kept from other unallocated work, so that who asks for many GPUs of them starts at all. Pure.

Unallocated work takes from nobody, and whatever becomes free is taken by what fits. Where small work always waits, two
hosts are never empty at once. So hosts are kept for the one that has waited longest of those who come first in their
accounts, once it has waited for as long as the knob says. Funded work sees nothing of it.
"""

from collections.abc import Iterable, Iterator

from gpuledger.policy.lines import ELIGIBLE, NAME, WORKLOAD, Line
from gpuledger.policy.state import PendingWorkload, PolicyConfig


def kept_for(leaves: Iterable[Line], at_s: int, config: PolicyConfig) -> PendingWorkload | None:
    """Return for whom hosts are kept, if for anybody.

    Args:
        leaves: The unallocated work of each account, in its order.
        at_s: The instant.
        config: The knobs.
    """
    after_s = config.unallocated_keeps_after_s
    if not after_s:
        return None
    first = min(
        (line.entries[0] for line in leaves if line.entries),
        key=lambda entry: (entry[ELIGIBLE], entry[NAME]),
        default=None,
    )
    return first[WORKLOAD] if first is not None and at_s - first[ELIGIBLE] >= after_s else None


def leaves_of(line: Line) -> Iterator[Line]:
    """Yield the lines of the leaves below an account, or its own."""
    if not line.below:
        yield line
    for below in line.below.values():
        yield from leaves_of(below)
