"""How the accounts stand at the beginning of a cycle, as far as it decides whose runs leave first. Pure."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property

from gpuledger.kernel.accounts import parting
from gpuledger.policy.contenders import floor_milli, present_milli
from gpuledger.policy.state import PER_MILLE, PolicyConfig
from gpuledger.policy.tree import Node, Tree


class Ranking:
    """How the accounts stand at the beginning of a cycle, as far as preemption asks; worked out when it is asked for.

    Args:
        tree: The accounts.
        config: The knobs.

    Attributes:
        tree: The accounts.
        floor_milli: Below how many GPUs each is not pushed.
        present_milli: Up to how many GPUs that keeps a run.
        excess: How far each is beyond its share; only the order of two of them has a meaning.
        excess_rank: The place of each, the furthest beyond first.
        unpaid_rank: The place of each, who used most without paying first.
        unpaid_beyond: 0 for those that used more without paying than is their part, or below which they are; else 1.
    """

    def __init__(self, tree: Tree, config: PolicyConfig) -> None:
        self.tree = tree
        self._config = config

    @cached_property
    def floor_milli(self) -> dict[str, int]:  # noqa: D102 - see the class
        return {path: floor_milli(node, self.tree, self._config) for path, node in self.tree.nodes.items()}

    @cached_property
    def present_milli(self) -> dict[str, int]:  # noqa: D102 - see the class
        return {path: present_milli(node, self.tree) for path, node in self.tree.nodes.items()}

    @cached_property
    def excess(self) -> dict[str, tuple[bool, int]]:  # noqa: D102 - see the class
        # Two different ratios a/b and c/d differ by at least 1/(b x d): shifted so far they differ by more than 1.
        bits = 2 * max((den for _, _, den in self._ratios.values()), default=0).bit_length()
        return {path: (beyond, (num << bits) // den) for path, (beyond, num, den) in self._ratios.items()}

    @cached_property
    def excess_rank(self) -> dict[str, int]:  # noqa: D102 - see the class
        return _ranks(self.tree, lambda node: self.excess[node.path])

    @cached_property
    def unpaid_rank(self) -> dict[str, int]:  # noqa: D102 - see the class
        return _ranks(self.tree, _unpaid)

    @cached_property
    def unpaid_beyond(self) -> dict[str, int]:  # noqa: D102 - see the class
        return dict(_unpaid_beyond(self.tree.root, PER_MILLE + self._config.hysteresis_permille))

    def is_beyond(self, mine: str, theirs: str) -> bool:
        """Say whether a leaf is further beyond its share than another where their paths part, by however little."""
        if mine == theirs:
            return False
        one, other = parting(mine, theirs)
        return self.excess[other] > self.excess[one]

    def exceeds(self, theirs: str, mine: str) -> bool:
        """Say whether used / entitled of the one exceeds that of the other by more than delta."""
        (beyond, num, den), (_, other_num, other_den) = self._ratios[theirs], self._ratios[mine]
        delta_permille = self._config.hysteresis_permille
        return (
            beyond or PER_MILLE * num * other_den > (PER_MILLE * other_num + delta_permille * other_den) * den
        )

    @cached_property
    def _ratios(self) -> dict[str, tuple[bool, int, int]]:
        """Whether each is beyond everybody, and its ratio as numerator and denominator."""
        return {path: _ratio(node) for path, node in self.tree.nodes.items()}


def _ranks(tree: Tree, key: Callable[[Node], tuple[bool, int | Fraction]]) -> dict[str, int]:
    """Number the nodes, the highest key of siblings first, each before what is below it."""
    return {path: rank for rank, path in enumerate(_in_order(tree.root, key))}


def _in_order(node: Node, key: Callable[[Node], tuple[bool, int | Fraction]]) -> Iterator[str]:
    for child in sorted(node.children, key=key, reverse=True):
        yield child.path
        yield from _in_order(child, key)


def _ratio(node: Node) -> tuple[bool, int, int]:
    """Return used / entitled of a node; without a share it is beyond everybody, by what it used."""
    num, den = node.ratio
    return (False, num, den) if node.share and den else (True, node.used_gpu_ms, 1)


def _unpaid(node: Node) -> tuple[bool, Fraction]:
    """How much a node used without paying, per share."""
    if not node.share:
        return True, Fraction(node.unallocated_gpu_ms)
    return False, Fraction(node.unallocated_gpu_ms, node.share)


def _unpaid_beyond(
    node: Node, from_permille: int, *, is_below_one: bool = False
) -> Iterator[tuple[str, int]]:
    """Yield the nodes below one, and 0 where they or one above them used more without paying than is their part.

    Args:
        node: The node.
        from_permille: By how much more, of the part that is theirs among their siblings by their shares.
        is_below_one: Whether the node did, or one above it.
    """
    used = sum(child.unallocated_gpu_ms for child in node.children)
    shares = sum(child.share for child in node.children)
    for child in node.children:
        theirs = used * child.share * from_permille
        is_beyond = is_below_one or child.unallocated_gpu_ms * shares * PER_MILLE > theirs
        yield child.path, 0 if is_beyond else 1
        yield from _unpaid_beyond(child, from_permille, is_below_one=is_beyond)
