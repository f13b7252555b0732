"""Whose quota the GPUs of a cluster are, where each GPU is the quota of one queue or cohort at most. Pure.

An account without a queue of its own is served by the nearest queue above it, so that queue holds what is issued to
both. What is issued to an account that no queue serves stays with the account: it is nobody else's to borrow
(docs/decisions/0039).
"""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from gpuledger.enforce.facts import Issued
from gpuledger.kernel.accounts import lineage, parent
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.apportion import apportion


class Quotas(NamedTuple):
    """Quotas in whole GPUs: parts of a GPU are nobody's.

    Args:
        queues: Account with a queue -> the quota of its queue.
        roots: Root with a cohort -> the quota of its cohort, for whoever asks next to borrow.
    """

    queues: Mapping[str, int]
    roots: Mapping[str, int]


def unserved(issued: Mapping[str, Issued], queued: AbstractSet[str]) -> list[Issued]:
    """Return what is issued to leaf accounts that no queue serves, by account: those that are issued anything."""
    inner = {above for path in issued if (above := parent(path)) is not None}
    return [
        one
        for path, one in sorted(issued.items())
        if path not in inner and one.issued_milli and queued.isdisjoint(lineage(path))
    ]


def divide(
    issued: Mapping[str, Issued],
    supply_milli: int,
    *,
    queued: Collection[str],
    roots: Collection[str],
    by_hand_milli: int = 0,
) -> Quotas:
    """Divide the supply among queues, and what is left among the cohorts of roots by their shares.

    Args:
        issued: What each account is issued; inner accounts hold what is below them.
        supply_milli: The supply.
        queued: The accounts with a queue whose quota is set.
        roots: The roots with a cohort whose quota is set.
        by_hand_milli: The quota of queues and cohorts that somebody else sets.
    """
    held = {path: issued[path].issued_milli for path in queued}
    for path in queued:
        above = [node for node in lineage(path) if node in held and node != path]
        if above:
            held[above[-1]] -= issued[path].issued_milli
    given = {path: amount // GPU_MILLI for path, amount in held.items()}
    whole = sum(one.issued_milli for path, one in issued.items() if parent(path) is None)
    unserved_milli = whole - sum(held.values())
    spare_milli = supply_milli - sum(given.values()) * GPU_MILLI - max(unserved_milli, by_hand_milli)
    names = sorted(roots)
    shares = [issued[path].share_ppm for path in names]
    parts = apportion(max(spare_milli // GPU_MILLI, 0), shares if any(shares) else [1] * len(names))
    return Quotas(given, dict(zip(names, parts, strict=True)))
