"""Where accounts stand among their siblings: the figures that every comparison of the order uses.

Siblings are compared by tier, then by used / entitled, then by the larger shortfall, then by the oldest eligible
workload, then by path. Denominators of one sibling set are brought to one common scale, so that ratios are compared as
whole numbers: by cross-multiplication of two, or by ``ratio_rank`` of many.
"""

import math
from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from gpuledger.policy.state import PER_MILLE, PolicyConfig
from gpuledger.policy.tree import Node, Tree

NEVER = 1 << 62
"""Later than any instant: the age of an account in which nothing waits."""


class Tier(IntEnum):
    """What is compared before any ratio."""

    BELOW_FLOOR = 0
    BY_RATIO = 1
    NOT_ENTITLED = 2
    """Entitled to nothing yet, in window and ahead: its ratio does not exist."""
    SHARE_ZERO = 3


class Standing(NamedTuple):
    """Where one account stood among its siblings when a turn was decided.

    Args:
        account: The path.
        used: Numerator of its ratio.
        entitled: Denominator of its ratio; 0 when it has none. Only the quotient has a meaning.
        tier: What was compared before the ratio.
    """

    account: str
    used: int
    entitled: int
    tier: Tier


class Contender:
    """A node in the comparison with its siblings, as it stands before any turn is taken.

    ``entitled`` is brought to one common denominator, ``scale``, per sibling set. ``base`` is what the shortfall is
    counted from. The floor counts below ``floor_milli`` running GPUs, for a gang with which no more than
    ``present_milli`` of them run. ``next_milli`` is the gang that would be served next here, 0 when nobody said.
    ``rank_bits`` is how far the children's ratios are shifted so that their floors keep their order.
    """

    __slots__ = (
        "base",
        "children",
        "entitled",
        "floor_milli",
        "next_milli",
        "oldest_s",
        "path",
        "present_milli",
        "rank_bits",
        "running_milli",
        "scale",
        "share",
        "used",
        "waits",
    )

    def __init__(
        self, node: Node, *, used: int, entitled: int, scale: int = 1, base: int = 0, next_milli: int = 0
    ) -> None:
        self.path = node.path
        self.share = node.share
        self.used = used
        self.entitled = entitled
        self.scale = scale
        self.base = base
        self.floor_milli = 0
        self.present_milli = 0
        self.next_milli = next_milli
        self.running_milli = node.running_milli
        self.oldest_s = NEVER if node.oldest_s is None else node.oldest_s
        self.waits = node.demand_milli > node.running_milli
        self.children: tuple[Contender, ...] = ()
        self.rank_bits = 0

    def __lt__(self, other: "Contender") -> bool:
        """Say whether this sibling is served before the other."""
        tier = self.tier(self.running_milli, self.next_milli, waits=self.waits)
        other_tier = other.tier(other.running_milli, other.next_milli, waits=other.waits)
        if tier != other_tier:
            return tier < other_tier
        if tier <= Tier.BY_RATIO:
            mine, theirs = self.used * other.entitled, other.used * self.entitled
            if mine != theirs:
                return mine < theirs
        mine, theirs = self.base - self.used * self.scale, other.base - other.used * other.scale
        if mine != theirs:
            return mine > theirs
        return (self.oldest_s, self.path) < (other.oldest_s, other.path)

    def tier(self, running_milli: int, gang_milli: int, *, waits: bool = True) -> Tier:
        """Return the tier when so much runs and a gang is next; the floor counts for who waits."""
        if not self.share:
            return Tier.SHARE_ZERO
        if not self.entitled:
            return Tier.NOT_ENTITLED
        return Tier.BELOW_FLOOR if waits and self.is_lifted(running_milli, gang_milli) else Tier.BY_RATIO

    def is_lifted(self, running_milli: int, gang_milli: int) -> bool:
        """Say whether the floor counts for a gang when so much runs: it lifts up to the present entitlement only."""
        return running_milli < self.floor_milli and running_milli + gang_milli <= self.present_milli

    def stands_as(self, other: "Contender") -> bool:
        """Say whether no comparison of waiting work can tell it from another of the same account and share."""
        return (
            (self.used, self.entitled, self.scale, self.base)
            == (other.used, other.entitled, other.scale, other.base)
            and (self.floor_milli, self.present_milli) == (other.floor_milli, other.present_milli)
            and (not self.floor_milli or self.running_milli == other.running_milli)
        )

    def adopt(self, children: tuple["Contender", ...]) -> "Contender":
        """Hang the children below.

        Two different ratios a/b and c/d differ by at least 1/(b x d). Shifted by twice the bits of the largest
        denominator they differ by more than 1, so their floors differ, and in the same direction.
        """
        self.children = children
        self.rank_bits = 2 * max((child.entitled for child in children), default=0).bit_length()
        return self


def allocated(tree: Tree, config: PolicyConfig, next_milli: Mapping[str, int] | None = None) -> Contender:
    """Return the tree as contenders for funded starts.

    Args:
        tree: The tree.
        config: The knobs.
        next_milli: The gang that would be served next, in milli-GPU, by account; of others nobody said.
    """
    return _funded(Contender(tree.root, used=0, entitled=1), tree.root, tree, config, next_milli or {})


def unallocated(tree: Tree) -> Contender:
    """Return the tree as contenders for unallocated starts: use / share, no floor."""
    return _unfunded(tree.root)


def _funded(
    contender: Contender, node: Node, tree: Tree, config: PolicyConfig, next_milli: Mapping[str, int]
) -> Contender:
    """Hang the contenders for funded starts below one of them."""
    scale = math.lcm(*(child.entitled_with_ahead.denominator for child in node.children))
    below = []
    for child in node.children:
        exact = child.entitled_with_ahead
        entitled = exact.numerator * (scale // exact.denominator)
        one = Contender(
            child,
            used=child.used_gpu_ms,
            entitled=entitled,
            scale=scale,
            base=entitled,
            next_milli=next_milli.get(child.path, 0),
        )
        if one.share and entitled:
            one.floor_milli, one.present_milli = floor_milli(child, tree, config), present_milli(child, tree)
        below.append(_funded(one, child, tree, config, next_milli))
    return contender.adopt(tuple(below))


def _unfunded(node: Node) -> Contender:
    contender = Contender(node, used=node.unallocated_gpu_ms, entitled=node.share)
    return contender.adopt(tuple(_unfunded(child) for child in node.children))


def floor_milli(node: Node, tree: Tree, config: PolicyConfig) -> int:
    """Return the GPUs below which a node that waits comes first: (1 - alpha) of its present entitlement.

    Running GPUs are whole milli-GPU, so they are below the exact floor when they are below its ceiling. Where GPUs are
    divided by credits, what a node is issued is its floor.
    """
    if tree.floors_milli is not None:
        return tree.floors_milli[node.path]
    kept_permille = PER_MILLE - config.floor_alpha_permille
    exact = node.portion  # whole numbers: this is worked out for every node in every cycle
    return -(-exact.numerator * tree.healthy_milli * kept_permille // (exact.denominator * PER_MILLE))


def present_milli(node: Node, tree: Tree) -> int:
    """Return up to how many running GPUs the floor lifts a node: its present entitlement, or what credits issue it.

    Running GPUs are whole milli-GPU, so they are within the exact entitlement when they are within what it is rounded
    down to.
    """
    if tree.floors_milli is not None:
        return tree.floors_milli[node.path]
    return node.portion.numerator * tree.healthy_milli // node.portion.denominator
