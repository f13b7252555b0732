"""Division by credits: unused time comes back (Karma, OSDI 2023).

In every quantum each sibling is guaranteed a part of its share; the rest of the supply is a pool. Who asks for less
than its guarantee lends what it leaves, and earns credits for what is taken; who asks for more borrows, from lenders
first and then from the pool, and pays. The pool's worth is handed out as credits, to all alike. Borrowers with the most
credits come first, and lenders with the least; each GPU lent or borrowed moves a credit, and the next one is decided
anew.

With unequal shares a credit buys GPUs in proportion to the share: a sibling pays, and earns, the mean share over its
own for each. So all are handed out the same, and who borrows its share of the pool neither gains nor loses.

Source: Vuppalapati et al., "Karma: Resource Allocation for Dynamic Demands", OSDI 2023. Here credits have no floor: a
sibling may borrow below zero, which keeps GPUs from idling. A guarantee is rounded down, the rest belongs to the pool.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import NamedTuple

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.policy.issue import Issue, unit_milli
from gpuledger.policy.state import PER_MILLE
from gpuledger.policy.tree import NOTHING, ROOT, Node, Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Sibling:
    """One of those among whom a supply is divided.

    Args:
        name: Its path; of equals the earlier comes first.
        share: Weight among the siblings; 0 gets nothing and has no credits.
        want: Slices that it asks for.
        credits: What it has, in slices.
    """

    name: str
    share: int
    want: int
    credits: Fraction


class Outcome(NamedTuple):
    """What a sibling got.

    Args:
        slices: How many.
        gain: By how much its credits change in the quantum.
    """

    slices: int
    gain: Fraction


def share_out(
    siblings: Sequence[Sibling], supply: int, *, shared_permille: int, quantum: Fraction | int = 1
) -> dict[str, Outcome]:
    """Divide one quantum's supply.

    Args:
        siblings: Each once, in any order.
        supply: Slices there are.
        shared_permille: alpha, the part of the supply that is the pool: 0 leaves lending alone, 1000 guarantees
            nothing.
        quantum: What a slice through the quantum moves, in credits.
    """
    outcome = {sibling.name: Outcome(0, Fraction(0)) for sibling in siblings}
    members = sorted((s for s in siblings if s.share), key=lambda s: s.name)
    if not members:
        return outcome
    whole = sum(s.share for s in members)
    kept_permille = PER_MILLE - shared_permille
    guaranteed = {s: supply * kept_permille * s.share // (PER_MILLE * whole) for s in members}
    pool = supply - sum(guaranteed.values())
    price = {s: Fraction(whole, len(members) * s.share) * quantum for s in members}
    handed = Fraction(pool, len(members)) * quantum
    lent = {s: guaranteed[s] - s.want for s in members if s.want < guaranteed[s]}
    wanted = {s: s.want - guaranteed[s] for s in members if s.want > guaranteed[s]}
    amount = min(sum(wanted.values()), sum(lent.values()) + pool)
    borrowed = _highest_first(
        {s.name: (s.credits + handed, price[s], most) for s, most in wanted.items()}, amount
    )
    taken = _highest_first(
        {s.name: (-s.credits - handed, price[s], most) for s, most in lent.items()},
        min(amount, sum(lent.values())),
    )
    for s in members:
        got, gave = borrowed.get(s.name, 0), taken.get(s.name, 0)
        outcome[s.name] = Outcome(min(s.want, guaranteed[s]) + got, handed + (gave - got) * price[s])
    return outcome


class Credited(NamedTuple):
    """A supply divided over a tree.

    Args:
        issue: What each node gets.
        gains: By how much each node's credits change, in GPUs through the quantum.
    """

    issue: Issue
    gains: Mapping[str, Fraction]


def issue_by_credits(
    tree: Tree, *, supply_milli: int, balances: Mapping[str, Fraction], shared_permille: int
) -> Credited:
    """Divide a supply among the roots, what a root gets among its children, and so on.

    Args:
        tree: The tree; ``issuable_milli`` is what each node may get at most.
        supply_milli: What there is to divide.
        balances: Credits of nodes, in GPUs; nodes that are left out have none. They are compared among siblings only.
        shared_permille: The part of every supply that is the siblings' pool.
    """
    unit = unit_milli(tree, supply_milli)
    slices = {ROOT: supply_milli // unit}
    gains: dict[str, Fraction] = {}
    for node in tree.inner_nodes():
        siblings = [
            Sibling(
                name=child.path,
                share=child.share,
                want=child.issuable_milli // unit,
                credits=balances.get(child.path, NOTHING),
            )
            for child in node.children
        ]
        divided = share_out(
            siblings, slices[node.path], shared_permille=shared_permille, quantum=Fraction(unit, GPU_MILLI)
        )
        for path, outcome in divided.items():
            slices[path], gains[path] = outcome
    issued = {path: slices[path] * unit for path in tree.nodes}
    top = sum(issued[child.path] for child in tree.root.children)
    return Credited(Issue(issued, supply_milli - top), gains)


class Credit(NamedTuple):
    """How an account stands.

    Args:
        gpu_ms: What it has.
        flow_milli: What it earns for each second that the division lasts; below 0 it pays.
    """

    gpu_ms: int
    flow_milli: int

    def after(self, seconds: int) -> int:
        """Return what it has so many seconds later."""
        return self.gpu_ms + self.flow_milli * seconds


def divide_by_credits(
    tree: Tree, supply_milli: int, credits_gpu_ms: Mapping[str, int], *, shared_permille: int, quantum_s: int
) -> tuple[Issue, dict[str, Credit]]:
    """Divide a supply for the quantum to come.

    Args:
        tree: The tree.
        supply_milli: What there is to divide.
        credits_gpu_ms: Credits by account; one that is left out has the mean of those of its siblings that are there.
        shared_permille: The part of every supply that is the siblings' pool.
        quantum_s: Length of the quantum.
    """
    has: dict[str, int] = {}
    for node in tree.inner_nodes():
        known = [credits_gpu_ms[child.path] for child in node.children if child.path in credits_gpu_ms]
        mean = sum(known) // len(known) if known else 0
        has.update((child.path, credits_gpu_ms.get(child.path, mean)) for child in node.children)
    quantum = GPU_MILLI * quantum_s
    balances = {path: Fraction(amount, quantum) for path, amount in has.items()}
    divided = issue_by_credits(
        tree, supply_milli=supply_milli, balances=balances, shared_permille=shared_permille
    )
    return divided.issue, {
        path: Credit(has[path], round(gain * GPU_MILLI)) for path, gain in divided.gains.items()
    }


def order_by_credits(tree: Tree, balances: Mapping[str, Fraction]) -> tuple[str, ...]:
    """Return the leaves, those with the most credits among their siblings first; shares of 0 last."""

    def walk(node: Node) -> Iterator[str]:
        for child in sorted(
            node.children, key=lambda c: (not c.share, -balances.get(c.path, NOTHING), c.path)
        ):
            if child.children:
                yield from walk(child)
            else:
                yield child.path

    return tuple(walk(tree.root))


def _highest_first(offers: Mapping[str, tuple[Fraction, Fraction, int]], amount: int) -> dict[str, int]:
    """Take so many slices, each from the highest level at that moment; every slice lowers its level by a step.

    Rather than slice by slice: all slices above a level are taken, the lowest level for which they are not too many,
    and of those just at it the earlier names'.

    Args:
        offers: Name -> (level, step, how many at most); ascending by name.
        amount: How many; no more than all offers together.
    """
    scale = lcm(1, *(part.denominator for level, step, _ in offers.values() for part in (level, step)))
    scaled = {
        name: (int(level * scale), int(step * scale), most) for name, (level, step, most) in offers.items()
    }

    def above(bound: int) -> dict[str, int]:
        return {
            name: min(most, max(-((bound - level) // step), 0))
            for name, (level, step, most) in scaled.items()
        }

    low = min((level - step * most for level, step, most in scaled.values()), default=0) - 1
    high = max((level for level, _, _ in scaled.values()), default=0)
    while high - low > 1:  # slices above `high` are few enough; those above `low` may be too many
        middle = (low + high) // 2
        if sum(above(middle).values()) <= amount:
            high = middle
        else:
            low = middle
    bound = low if sum(above(low).values()) <= amount else high
    found = above(bound)
    left = amount - sum(found.values())
    for name, (level, step, most) in scaled.items():
        if left and found[name] < most and level - step * found[name] == bound:
            found[name] += 1
            left -= 1
    return found
