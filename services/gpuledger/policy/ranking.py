"""How the accounts stand at the beginning of a cycle, as far as it decides whose runs leave first. Pure."""

from collections.abc import Callable, Iterator
from fractions import Fraction

from gpuledger.policy.contenders import floor_milli, present_milli
from gpuledger.policy.state import PolicyConfig
from gpuledger.policy.tree import Node, Tree


class Ranking:
    """How the accounts stand at the beginning of a cycle, as far as preemption asks.

    Args:
        tree: The accounts.
        config: The knobs.

    Attributes:
        tree: The accounts.
        floor_milli: Below how many GPUs each is not pushed.
        present_milli: Up to how many GPUs that keeps a run.
        excess: How far each is beyond its share.
        excess_rank: The place of each, the furthest beyond first.
        unpaid_rank: The place of each, who used most without paying first.
    """

    def __init__(self, tree: Tree, config: PolicyConfig) -> None:
        self.tree = tree
        self.floor_milli = {path: floor_milli(node, tree, config) for path, node in tree.nodes.items()}
        self.present_milli = {path: present_milli(node, tree) for path, node in tree.nodes.items()}
        self.excess = {path: _excess(node) for path, node in tree.nodes.items()}
        self.excess_rank = _ranks(tree, lambda node: self.excess[node.path])
        self.unpaid_rank = _ranks(tree, _unpaid)


def _ranks(tree: Tree, key: Callable[[Node], tuple[bool, Fraction]]) -> dict[str, int]:
    """Number the nodes, the highest key of siblings first, each before what is below it."""
    return {path: rank for rank, path in enumerate(_in_order(tree.root, key))}


def _in_order(node: Node, key: Callable[[Node], tuple[bool, Fraction]]) -> Iterator[str]:
    for child in sorted(node.children, key=key, reverse=True):
        yield child.path
        yield from _in_order(child, key)


def _excess(node: Node) -> tuple[bool, Fraction]:
    """How far a node is beyond its share; without a share, beyond everybody."""
    if not node.share or not node.entitled_with_ahead:
        return True, Fraction(node.used_gpu_ms)
    return False, Fraction(node.used_gpu_ms) / node.entitled_with_ahead


def _unpaid(node: Node) -> tuple[bool, Fraction]:
    """How much a node used without paying, per share."""
    if not node.share:
        return True, Fraction(node.unallocated_gpu_ms)
    return False, Fraction(node.unallocated_gpu_ms, node.share)
