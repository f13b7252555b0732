"""The program tree as books need it: shares, the part of each leaf, and whose work is charged. Pure."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

from gpuledger.kernel.accounts import lineage, own_path, share_unless_set
from gpuledger.policy.entitlement import History, parts
from gpuledger.policy.memory import Step


class Forest(NamedTuple):
    """The program tree while the same inner accounts have work of their own.

    Args:
        shares: Share by path, every node in order.
        parts: The part of the cluster that is each leaf's.
        funded: The accounts whose work is charged: shares are above 0 all along their path.
    """

    shares: Mapping[str, int]
    parts: Mapping[str, Fraction]
    funded: frozenset[str]


def inner_of(accounts: Iterable[str]) -> frozenset[str]:
    """Return every account that is above another."""
    return frozenset(above for path in accounts for above in lineage(path) if above != path)


def forest_of(set_: Mapping[str, int], inner: frozenset[str], working: frozenset[str]) -> Forest:
    """Return the tree.

    Args:
        set_: Share by account, of those that are listed.
        inner: The accounts above others.
        working: Those of them that have work of their own.
    """
    nodes = {*set_, *inner, *(own_path(account) for account in working)}
    shares = {node: set_.get(node, share_unless_set(node)) for node in sorted(nodes)}
    history = History(shares={node: [Step(0, share)] for node, share in shares.items()})
    funded = frozenset(
        account
        for account in shares
        if account not in inner - working
        and all(shares[node] > 0 for node in lineage(own_path(account) if account in working else account))
    )
    return Forest(shares, parts(shares, history, 0), funded)
