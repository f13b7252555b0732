"""Fair Tree: the ranking of Slurm's ``priority/multifactor`` plug-in, with exact fractions.

Siblings are compared by *level fair share* S / U: S is a share among the siblings' shares, U a use among the
use of all below the parent. The walk goes down the tree, highest first, and each user (a leaf) met on the way
takes the next rank; the *factor* is the rank by the number of users, 1 for the first. Equal users have one
rank. Equal sibling accounts are merged: their children are compared as one set. A user that is equal to an account
shares the rank of the best user below it.

A share of ``parent`` makes an account transparent, as if its children were children of the account above it;
a user with it comes first among them.

Source: Slurm's documentation of Fair Tree (slurm.schedmd.com/fair_tree.html); where Slurm's code does otherwise
is told in docs/fairness.md.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

from gpuledger.kernel.accounts import parent
from gpuledger.policy.tree import NOTHING, ROOT

Level = tuple[int, Fraction]
"""A level fair share that can be compared: infinity is (1, 0), a number (0, it)."""

INFINITE: Level = (1, NOTHING)


@dataclass(frozen=True, slots=True)
class Association:
    """A node of Slurm's tree.

    Args:
        path: The account or user; every node above it is listed too.
        share: Weight among the siblings; None for ``parent``.
        used: Decayed use of a leaf in any unit; of an inner node it follows from the leaves.
    """

    path: str
    share: int | None
    used: int = 0


@dataclass(frozen=True, slots=True)
class Ranked:
    """A user's place.

    Args:
        path: The leaf.
        level: Its level fair share; None for infinity.
        factor: Rank by the number of users; 1 is served first.
    """

    path: str
    level: Fraction | None
    factor: Fraction


@dataclass(slots=True)
class _Item:
    path: str
    level: Level
    children: list["_Item"]


def rank(associations: Iterable[Association]) -> tuple[Ranked, ...]:
    """Return the users, first to be served first; of equals, the earlier path."""
    nodes = {node.path: node for node in associations}
    below: dict[str, list[Association]] = {path: [] for path in (ROOT, *nodes)}
    for path in sorted(nodes):
        below[parent(path) or ROOT].append(nodes[path])
    used = _used(nodes, below)
    users = sum(not below[path] for path in nodes)
    ranked: list[Ranked] = []
    for place, tied in _descend(_items(ROOT, below, used), [], users):
        ranked.extend(
            Ranked(user.path, None if user.level[0] else user.level[1], Fraction(place, users))
            for user in sorted(tied, key=lambda user: user.path)
        )
    return tuple(ranked)


def _used(nodes: Mapping[str, Association], below: Mapping[str, Sequence[Association]]) -> dict[str, int]:
    used = dict.fromkeys((ROOT, *nodes), 0)
    for path, node in nodes.items():
        if not below[path]:
            above: str | None = path
            while above is not None:
                used[above] += node.used
                above = parent(above)
            used[ROOT] += node.used
    return used


def _items(account: str, below: Mapping[str, Sequence[Association]], used: Mapping[str, int]) -> list[_Item]:
    """Return what is compared below an account: its children, and those of transparent ones in their place."""
    members = list(_members(account, below))
    shares = sum(node.share or 0 for node in members)

    def level(node: Association) -> Level:
        if node.share is None:
            return INFINITE
        if not node.share:
            return 0, NOTHING
        if not used[node.path]:
            return INFINITE
        return 0, Fraction(node.share, shares) / Fraction(used[node.path], used[account])

    return [
        _Item(node.path, level(node), _items(node.path, below, used) if below[node.path] else [])
        for node in members
    ]


def _members(account: str, below: Mapping[str, Sequence[Association]]) -> Iterator[Association]:
    for node in below[account]:
        if node.share is None and below[node.path]:
            yield from _members(node.path, below)
        else:
            yield node


def _descend(items: list[_Item], companions: list[_Item], place: int) -> Iterator[tuple[int, list[_Item]]]:
    """Yield ranks with the users that hold them; companions are users equal to the best of the items."""
    for _, equal in groupby(
        sorted(items, key=lambda item: item.level, reverse=True), key=lambda item: item.level
    ):
        group = list(equal)
        users = companions + [item for item in group if not item.children]
        merged = [child for item in group for child in item.children]
        companions = []
        if merged:
            for rank_, tied in _descend(merged, users, place):
                yield rank_, tied
                place = rank_ - len(tied)
        else:
            yield place, users
            place -= len(users)
