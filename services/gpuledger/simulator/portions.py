"""Which part of the cluster each account of a scenario is entitled to: share by share down the tree, exact."""

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction

from gpuledger.kernel.apportion import apportion
from gpuledger.kernel.portions import portions
from gpuledger.simulator.scenario import AccountSpec


def parts_of(accounts: Iterable[AccountSpec]) -> dict[str, Fraction]:
    """Return the exact part of each leaf of a scenario, by path in ascending order."""
    shares = {spec.account: spec.share for spec in accounts}
    return dict(sorted(portions(shares, shares).items()))


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
