"""Which exact part of a cluster each leaf account is entitled to, and from when to when. Pure.

The part is the product over the account's path of share / sum of the siblings' shares. Shares change seldom,
so the tree is walked once per change and the result goes into the roll-up as a small table.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from gpuledger.kernel.accounts import lineage
from gpuledger.kernel.portions import portions


class ShareInForce(NamedTuple):
    """An account's share over ``[from_s, to_s)``; ``to_s`` is None for "until it is set again"."""

    account: str
    share: int
    from_s: int
    to_s: int | None


@dataclass(frozen=True, slots=True)
class Version:
    """Each leaf's part of the cluster over an interval in which no share changes."""

    from_s: int
    to_s: int
    portions: Mapping[str, Fraction]


def versions(paths: Sequence[str], shares: Sequence[ShareInForce], from_s: int, to_s: int) -> list[Version]:
    """Return the parts of ``[from_s, to_s)``, cut wherever a share of the tree changes."""
    nodes = {node for path in paths for node in lineage(path)}
    own = [share for share in shares if share.account in nodes]
    edges = sorted({from_s, to_s, *(share.from_s for share in own if from_s < share.from_s < to_s)})
    return [
        Version(start_s, end_s, portions(paths, _in_force(own, start_s)))
        for start_s, end_s in itertools.pairwise(edges)
    ]


def as_columns(found: Sequence[Version]) -> dict[str, list[int] | list[str]]:
    """Return the versions as the arrays that the roll-up's statement takes; one denominator per version."""
    rows: list[tuple[int, str, int, int]] = []
    for number, version in enumerate(found):
        whole = math.lcm(*(part.denominator for part in version.portions.values()))
        rows += [(number, a, int(part * whole), whole) for a, part in version.portions.items() if part]
    return {
        "versions": list(range(len(found))),
        "starts": [version.from_s for version in found],
        "ends": [version.to_s for version in found],
        "portion_versions": [row[0] for row in rows],
        "accounts": [row[1] for row in rows],
        "numerators": [row[2] for row in rows],
        "denominators": [row[3] for row in rows],
    }


def _in_force(shares: Iterable[ShareInForce], at_s: int) -> dict[str, int]:
    return {s.account: s.share for s in shares if s.from_s <= at_s and (s.to_s is None or at_s < s.to_s)}
