"""The program tree with its sums: who is whose sibling, and which part of the cluster is whose.

An account's part of the cluster is the product over its path of share / sum of the siblings' shares, kept as
an exact fraction; the roots are siblings of one another under one virtual root with the empty path.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from gpuledger.kernel.accounts import SEPARATOR, lineage, own_path, parent
from gpuledger.kernel.apportion import apportion
from gpuledger.kernel.errors import Refused
from gpuledger.policy.state import AccountState

ROOT = ""
"""Path of the virtual root above the roots of the forest."""

PPM = 1_000_000
NOTHING = Fraction(0)


class Node(NamedTuple):
    """An account with the sums of everything below it.

    Args:
        path: The account; empty for the virtual root.
        share: Weight among the siblings.
        share_ppm: The share as parts per million of the parent; siblings sum to a million, or are all 0.
        portion: Exact part of the cluster that the shares give, from 0 to 1.
        funded: Whether every share on the path is above 0.
        children: Ordered by path; empty for a leaf.
        used_gpu_ms: Allocated use in the window plus open holds and par.
        held_gpu_ms: The part of it that is open holds.
        unallocated_gpu_ms: Unallocated use in the window.
        entitled: Entitlement over the window in gpu_ms, exact, with par.
        par_gpu_ms: The part of use and of entitlement that stands for the time before a leaf existed.
        ahead: Entitlement over the protection cap ahead in gpu_ms, exact.
        entitled_with_ahead: Both together: the denominator of the ratio.
        demand_milli: GPUs of funded work running or eligible, as given.
        issuable_milli: The part of the demand that shares above 0 all along the path, and limits, let be issued.
        running_milli: GPUs of allocated runs now.
        oldest_s: When the oldest eligible workload became eligible; None when nothing waits.
        limit_milli: The most it may be issued; None for no limit.
        created_s: When the account came to be; None when nobody said.
    """

    path: str
    share: int
    share_ppm: int
    portion: Fraction
    funded: bool
    children: tuple["Node", ...]
    used_gpu_ms: int
    held_gpu_ms: int
    unallocated_gpu_ms: int
    entitled: Fraction
    par_gpu_ms: int
    ahead: Fraction
    entitled_with_ahead: Fraction
    demand_milli: int
    issuable_milli: int
    running_milli: int
    oldest_s: int | None
    limit_milli: int | None
    created_s: int | None

    @property
    def ratio(self) -> tuple[int, int]:
        """(used + open holds) / (entitled + ahead) as whole numbers; the second is 0 without any entitlement."""
        entitled = self.entitled_with_ahead
        return self.used_gpu_ms * entitled.denominator, entitled.numerator


@dataclass(frozen=True, slots=True)
class Tree:
    """The forest under its virtual root.

    Args:
        root: The virtual root.
        nodes: Every account by path, the virtual root excluded, ordered by path.
        healthy_milli: Healthy capacity now.
        shared_milli: The same as use counts it: with every cluster of the tree, each GPU at its weight.
        floors_milli: GPUs below which a node that waits comes first; None where a part of its entitlement is.
    """

    root: Node
    nodes: Mapping[str, Node]
    healthy_milli: int
    shared_milli: int
    floors_milli: Mapping[str, int] | None = None

    def leaf_path(self, account: str) -> str:
        """Return where the work of an account counts: the account itself, or its ``~own`` child."""
        return own_path(account) if self.nodes[account].children else account

    def is_funded(self, account: str, minimum_runtime_s: int) -> bool:
        """Say whether work of an account is charged and protected: a minimum runtime, and shares all along its path."""
        return minimum_runtime_s > 0 and self.nodes[self.leaf_path(account)].funded

    def leaves(self) -> Iterator[Node]:
        """Yield the leaves, ordered by path."""
        return (node for node in self.nodes.values() if not node.children)

    def inner_nodes(self) -> Iterator[Node]:
        """Yield the virtual root and every account with children, each before its children."""
        yield self.root
        yield from (node for node in self.nodes.values() if node.children)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What there is to share.

    Args:
        healthy_milli: Healthy capacity now.
        window_gpu_ms: Healthy capacity integrated over the look-back window.
        ahead_gpu_ms: Healthy capacity over the protection cap ahead.
        shared_milli: Healthy capacity now as use counts it; None for ``healthy_milli``.
    """

    healthy_milli: int
    window_gpu_ms: int
    ahead_gpu_ms: int | Fraction
    shared_milli: int | None = None

    @property
    def counted_milli(self) -> int:
        """Healthy capacity now as use counts it."""
        return self.healthy_milli if self.shared_milli is None else self.shared_milli


def build_tree(
    accounts: Iterable[AccountState],
    capacity: Capacity,
    *,
    running_milli: Mapping[str, int] | None = None,
    oldest_s: Mapping[str, int] | None = None,
) -> Tree:
    """Build the tree of the accounts, and of those that only run or wait.

    Inner nodes that nobody listed have share 1. A working account that nobody listed has share 0: it is
    shown, it is issued nothing, and its work goes last. Work of an inner node counts in its ``~own`` child.

    Args:
        accounts: Listed accounts, each once, in any order.
        capacity: What there is to share.
        running_milli: GPUs of allocated runs by the account that owns them.
        oldest_s: Earliest eligible instant of the waiting work by the account that owns it.

    Raises:
        Refused: When an account is listed twice.
    """
    running_milli = running_milli or {}
    oldest_s = oldest_s or {}
    states = _states(accounts, frozenset((*running_milli, *oldest_s)))
    built: dict[str, Node] = {}
    shares = tuple([(path, state.share) for path, state in states.items()])
    for place in _places(shares, capacity.ahead_gpu_ms):
        path, portion, funded, ahead = place.path, place.portion, place.funded, place.ahead
        state = states.get(path, _VIRTUAL_ROOT)
        if place.children or path == ROOT:
            built[path] = _inner(place, state, tuple([built[child] for child in place.children]))
            continue
        entitled = _entitled(state, portion, capacity)
        built[path] = Node(
            path=path,
            share=state.share,
            share_ppm=place.share_ppm,
            portion=portion,
            funded=funded,
            children=(),
            used_gpu_ms=state.used_gpu_ms + state.par_gpu_ms,
            held_gpu_ms=state.held_gpu_ms,
            unallocated_gpu_ms=state.unallocated_gpu_ms,
            entitled=entitled,
            par_gpu_ms=state.par_gpu_ms,
            ahead=ahead,
            entitled_with_ahead=entitled + ahead,
            demand_milli=state.demand_milli,
            issuable_milli=_within(state.limit_milli, state.demand_milli) if funded else 0,
            running_milli=sum([running_milli.get(owner, 0) for owner in place.owners]),
            oldest_s=min([oldest_s[owner] for owner in place.owners if owner in oldest_s], default=None),
            limit_milli=state.limit_milli,
            created_s=state.created_s,
        )
    root = built.pop(ROOT)
    nodes = {path: built[path] for path in sorted(built)}
    return Tree(root, nodes, capacity.healthy_milli, capacity.counted_milli)


def round_exactly(tree: Tree, exact: Mapping[str, Fraction], *, unit: int = 1) -> dict[str, int]:
    """Round an amount that sums up the tree, so that the rounded amounts sum up it too.

    Every node gets its exact amount rounded down or up to a multiple of ``unit``, hence within one unit of
    it at any depth. The units left over at a parent go to the children with the largest remainders; ties go
    to the larger share, then to the older account, then to the earlier path. The root is rounded down.

    Args:
        tree: The tree.
        exact: Non-negative amount by path, the virtual root's included; each is its children's sum.
        unit: The quantum.
    """
    rounded = {ROOT: int(exact[ROOT] // unit) * unit}
    for node in tree.inner_nodes():
        floors = {child.path: int(exact[child.path] // unit) for child in node.children}
        left = rounded[node.path] // unit - sum(floors.values())
        if left:
            by_remainder = sorted(
                node.children,
                key=lambda child: (-(exact[child.path] % unit), -child.share, _age(child), child.path),
            )
            for child in by_remainder[:left]:
                floors[child.path] += 1
        rounded.update((path, units * unit) for path, units in floors.items())
    return rounded


_VIRTUAL_ROOT = AccountState(account="virtual-root", share=1)
"""What the node above the roots is told by: it has no siblings and no limit."""


class _Place(NamedTuple):
    """Where a node is in a tree of given shares.

    Args:
        path: The account.
        children: Ordered by path.
        owners: The accounts whose work counts at a leaf.
        share_ppm: The share as parts per million of the parent.
        portion: Its part of the cluster.
        live: The part that is its leaves' together; less than its own where siblings below have no share at all.
        ahead: Its entitlement over the protection cap ahead.
        funded: Whether every share on the path is above 0.
    """

    path: str
    children: tuple[str, ...]
    owners: tuple[str, ...]
    share_ppm: int
    portion: Fraction
    live: Fraction
    ahead: Fraction
    funded: bool


@lru_cache(maxsize=64)
def _places(shares: tuple[tuple[str, int], ...], ahead_gpu_ms: int | Fraction) -> tuple[_Place, ...]:
    """Return the places of accounts of given shares, the virtual root's too, each after those below it.

    Trees, and what is ahead, stay as they are from one cycle to the next, so it is kept.

    Args:
        shares: Share by path, ordered by path, every node above a path among them.
        ahead_gpu_ms: Healthy capacity over the protection cap ahead.
    """
    share = dict(shares)
    children: dict[str, list[str]] = {ROOT: [], **{path: [] for path in share}}
    for path in share:
        children[parent(path) or ROOT].append(path)
    given: dict[str, tuple[int, Fraction, bool]] = {ROOT: (PPM, Fraction(1), True)}
    for path in sorted(children, key=_depth):
        below = [share[child] for child in children[path]]
        whole = sum(below)
        _, portion, funded = given[path]
        for child, weight, ppm in zip(children[path], below, apportion(PPM, below), strict=True):
            part = portion * Fraction(weight, whole) if whole else NOTHING
            given[child] = (ppm, part, funded and weight > 0)
    found: dict[str, _Place] = {}
    for path in sorted(children, key=lambda path: (-_depth(path), path)):
        ppm, portion, funded = given[path]
        live = sum((found[child].live for child in children[path]), NOTHING)
        is_leaf = not children[path] and path != ROOT
        live = portion if is_leaf else live
        ahead = live * ahead_gpu_ms
        found[path] = _Place(path, tuple(children[path]), _owners(path), ppm, portion, live, ahead, funded)
    return tuple(found.values())


def _states(accounts: Iterable[AccountState], workers: frozenset[str]) -> dict[str, AccountState]:
    """Return paths and states, ordered by path: every inner node present, ``~own`` children where they are needed."""
    listed = tuple(accounts)
    states = {state.account: state for state in listed}
    if len(states) != len(listed):
        times = Counter(state.account for state in listed)
        twice = next(account for account, count in times.items() if count > 1)
        raise Refused(f"account {twice!r} is listed twice")
    added, inner, order = _added(tuple(states), workers)
    states |= added
    owning = [path for path in inner if path in workers or _works(states[path])]
    for path in owning:
        _move_to_own(states, path)
    return dict(sorted(states.items())) if owning else {path: states[path] for path in order}


class _Added(NamedTuple):
    """What is known of a forest by its paths.

    Args:
        states: Those whom nobody listed: who works, and inner nodes.
        inner: The inner nodes that are listed or work themselves, ordered by path.
        order: All paths in their order.
    """

    states: Mapping[str, AccountState]
    inner: tuple[str, ...]
    order: tuple[str, ...]


@lru_cache(maxsize=64)
def _added(listed: tuple[str, ...], workers: frozenset[str]) -> _Added:
    """Return who has to be added to the listed accounts; they seldom change from one cycle to the next."""
    states = {path: AccountState(account=path, share=0) for path in sorted(workers - set(listed))}
    known = {*listed, *states}
    inner = {node for path in known for node in lineage(path) if node != path}
    states |= {path: AccountState(account=path, share=1) for path in sorted(inner - known)}
    return _Added(states, tuple(sorted(inner & known)), tuple(sorted(known | inner)))


def _move_to_own(states: dict[str, AccountState], path: str) -> None:
    """Let what an inner node did itself count in its virtual child."""
    state, own = states[path], own_path(path)
    listed = states.get(own, AccountState(account=own, share=0))
    states[own] = replace(
        listed,
        used_gpu_ms=listed.used_gpu_ms + state.used_gpu_ms,
        held_gpu_ms=listed.held_gpu_ms + state.held_gpu_ms,
        unallocated_gpu_ms=listed.unallocated_gpu_ms + state.unallocated_gpu_ms,
        demand_milli=listed.demand_milli + state.demand_milli,
    )


def _owners(leaf: str) -> tuple[str, ...]:
    """Return the accounts whose work counts at the leaf: itself, and its parent for a ``~own`` child."""
    owner = parent(leaf)
    return (leaf, owner) if owner is not None and leaf == own_path(owner) else (leaf,)


def _works(state: AccountState) -> bool:
    return bool(state.used_gpu_ms or state.demand_milli or state.unallocated_gpu_ms)


def _depth(path: str) -> int:
    return path.count(SEPARATOR) + 1 if path else 0


def _within(limit_milli: int | None, demand_milli: int) -> int:
    return demand_milli if limit_milli is None else min(limit_milli, demand_milli)


def _age(node: Node) -> tuple[bool, int]:
    """Sort key: the older first, those of whom nobody said when they came to be last."""
    return node.created_s is None, node.created_s or 0


def _entitled(state: AccountState, portion: Fraction, capacity: Capacity) -> Fraction:
    """Return the entitlement of a leaf over the window, with par."""
    if state.entitled_gpu_ms is None:
        return portion * capacity.window_gpu_ms + state.par_gpu_ms
    return Fraction(state.entitled_gpu_ms + state.par_gpu_ms)


def _inner(place: _Place, state: AccountState, children: tuple[Node, ...]) -> Node:
    entitled = _sum([child.entitled for child in children])
    return Node(
        path=place.path,
        share=state.share,
        share_ppm=place.share_ppm,
        portion=place.portion,
        funded=place.funded,
        children=children,
        used_gpu_ms=sum([child.used_gpu_ms for child in children]),
        held_gpu_ms=sum([child.held_gpu_ms for child in children]),
        unallocated_gpu_ms=sum([child.unallocated_gpu_ms for child in children]),
        entitled=entitled,
        par_gpu_ms=sum([child.par_gpu_ms for child in children]),
        ahead=place.ahead,
        entitled_with_ahead=entitled + place.ahead,
        demand_milli=sum([child.demand_milli for child in children]),
        issuable_milli=_within(state.limit_milli, sum([child.issuable_milli for child in children])),
        running_milli=sum([child.running_milli for child in children]),
        oldest_s=min((child.oldest_s for child in children if child.oldest_s is not None), default=None),
        limit_milli=state.limit_milli,
        created_s=state.created_s,
    )


def _sum(amounts: Iterable[Fraction]) -> Fraction:
    """Return the sum; whole amounts, as most are, are summed as integers."""
    whole, rest = 0, NOTHING
    for amount in amounts:
        if amount.denominator == 1:
            whole += amount.numerator
        else:
            rest += amount
    return rest + whole if rest else Fraction(whole)
