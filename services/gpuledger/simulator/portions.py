"""Which part of the cluster each account of a scenario is entitled to: share by share down the tree, exact."""

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction

from gpuledger.kernel.accounts import lineage, owner_of, parent, share_unless_set
from gpuledger.kernel.apportion import apportion
from gpuledger.simulator.scenario import AccountSpec


def portions(accounts: Iterable[AccountSpec]) -> dict[str, Fraction]:
    """Return each leaf's exact part, by path in ascending order.

    The parts sum to 1, less the parts of siblings whose shares are all 0. An inner node that the scenario does not
    name has share 1. What the virtual child ``~own`` is entitled to stands under its parent, where the work is.
    """
    shares = {spec.account: spec.share for spec in accounts}
    children: dict[str | None, set[str]] = {}
    for path in shares:
        for node in lineage(path):
            children.setdefault(parent(node), set()).add(node)
    found: dict[str, Fraction] = {}

    def descend(node: str | None, part: Fraction) -> None:
        below = sorted(children.get(node, ()))
        if not below and node is not None:
            found[owner_of(node)] = part
        whole = sum(_share(child, shares) for child in below)
        for child in below:
            descend(child, part * Fraction(_share(child, shares), whole) if whole else Fraction(0))

    descend(None, Fraction(1))
    return dict(sorted(found.items()))


def _share(path: str, shares: Mapping[str, int]) -> int:
    return shares.get(path, share_unless_set(path))


class Entitlement:
    """Divides capacity among accounts, to the unit.

    Args:
        parts: Account -> its part.
    """

    def __init__(self, parts: Mapping[str, Fraction]) -> None:
        whole = math.lcm(*(part.denominator for part in parts.values()))
        self._accounts = tuple(parts)
        weights = [int(part * whole) for part in parts.values()]
        self._weights = [*weights, whole - sum(weights)]  # the last is what nobody is entitled to

    def of(self, gpu_ms: int) -> dict[str, int]:
        """Return what each account is entitled to of a capacity; largest remainders get the odd units."""
        return dict(zip(self._accounts, apportion(gpu_ms, self._weights)[:-1], strict=True))


__all__ = ["Entitlement", "portions"]
