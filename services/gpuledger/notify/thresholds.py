"""Which parts of their budgets accounts have spent: whole numbers, compared crosswise, never divided."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gpuledger.kernel.accounts import lineage

THRESHOLDS = (50, 80, 100)
"""Per cent of what an account was given, unless the file of recipients says others."""

_HUNDRED = 100


class Spent(NamedTuple):
    """What an account was given for a period of a cluster, and has spent; weighted gpu_ms.

    Args:
        account: A leaf, or an inner account with all below it.
        spent_gpu_ms: Charged less credited.
        given_gpu_ms: Granted, rolled over and transferred into the period.
    """

    cluster: str
    period: str
    account: str
    spent_gpu_ms: int
    given_gpu_ms: int


def by_node(leaves: Iterable[Spent]) -> list[Spent]:
    """Return each account and each that stands above it with the sums of what it is made of, in order.

    Args:
        leaves: Accounts of any clusters and periods. What an inner account owns itself may be under its own path.
    """
    sums: dict[tuple[str, str, str], tuple[int, int]] = {}
    for leaf in leaves:
        for node in lineage(leaf.account):
            key = (leaf.cluster, leaf.period, node)
            spent, given = sums.get(key, (0, 0))
            sums[key] = (spent + leaf.spent_gpu_ms, given + leaf.given_gpu_ms)
    return [Spent(*key, *sums[key]) for key in sorted(sums)]


def reached(spent: Spent, thresholds: Sequence[int] = THRESHOLDS) -> list[int]:
    """Return the thresholds, in per cent, that an account has reached, the lowest first.

    An account that was given nothing, or owes what it was given and more, has no part of it to speak of.
    """
    if spent.given_gpu_ms <= 0:
        return []
    return [each for each in sorted(thresholds) if spent.spent_gpu_ms * _HUNDRED >= each * spent.given_gpu_ms]
