"""Who shares a cluster, and which exact part each account is entitled to: share by share down the tree. Pure."""

from collections.abc import Iterable, Mapping
from fractions import Fraction

from gpuledger.kernel.accounts import UNMAPPED_ROOT, lineage, owner_of, parent, share_unless_set


def members(cluster: str, paths: Iterable[str], clusters: Iterable[str]) -> list[str]:
    """Return the accounts that share a cluster.

    A root named like the cluster owns it alone (imported traces); otherwise every root that is not
    named like another cluster shares it. What nothing says an owner of shares nothing.
    """
    paths = list(paths)
    roots = {next(lineage(path)) for path in paths}
    owners = {cluster} if cluster in roots else roots - {*clusters, UNMAPPED_ROOT}
    return [path for path in paths if next(lineage(path)) in owners]


def portions(paths: Iterable[str], shares: Mapping[str, int]) -> dict[str, Fraction]:
    """Return each leaf's exact part of the cluster.

    The parts sum to 1, less the parts of sibling sets whose shares are all 0: those are entitled to nothing.
    What the virtual child ``~own`` is entitled to stands under its parent, where the work is booked.

    Args:
        paths: The accounts; those above them need not be named.
        shares: Share by account; one without has what it has when nobody set one.
    """
    children: dict[str | None, set[str]] = {}
    for path in paths:
        for node in lineage(path):
            children.setdefault(parent(node), set()).add(node)
    found: dict[str, Fraction] = {}

    def descend(node: str | None, part: Fraction) -> None:
        below = sorted(children.get(node, ()))
        if not below and node is not None:
            found[owner_of(node)] = part
        whole = sum(shares.get(child, share_unless_set(child)) for child in below)
        for child in below:
            share = shares.get(child, share_unless_set(child))
            descend(child, part * Fraction(share, whole) if whole else Fraction(0))

    descend(None, Fraction(1))
    return found
