"""The division and the order for a tree written by hand: a calculator, a teaching aid, a test bench.

It is the policy itself (``issue`` and ``fair_share``) without a ledger: what a cycle reads from the journal is
given instead. Only what needs a clock is left out: nobody runs and nothing waits, so the floor of the order
never applies, and siblings stand by their ratios alone.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction

from gpuledger.policy.fair_share import order_leaves
from gpuledger.policy.fair_tree import Association, Ranked, rank
from gpuledger.policy.issue import Issue, issue
from gpuledger.policy.state import PER_MILLE, AccountState, PolicyConfig
from gpuledger.policy.tree import Capacity, Tree, build_tree

CONFIG = PolicyConfig(floor_alpha_permille=PER_MILLE)
"""The policy's own knobs, with a floor of nothing."""


@dataclass(frozen=True, slots=True)
class Division:
    """The answer.

    Args:
        tree: Every account with its sums and its part of the cluster.
        issue: What each is issued, and what is left idle.
        order: The leaves, next to be served first.
    """

    tree: Tree
    issue: Issue
    order: tuple[str, ...]


def divide_by_hand(
    accounts: Iterable[AccountState], *, supply_milli: int, window_gpu_ms: int | None = None
) -> Division:
    """Divide a supply among accounts, and say who is served next.

    Accounts that used nothing are divided by share alone.

    Args:
        accounts: The tree; use and demand of an inner account are those of the work that it owns itself.
        supply_milli: Milli-GPU there are to divide.
        window_gpu_ms: Capacity of the look-back window; the supply through a whole window unless given.

    Raises:
        Refused: When an account is listed twice or the supply is negative.
    """
    if window_gpu_ms is None:
        window_gpu_ms = supply_milli * CONFIG.window_s
    capacity = Capacity(
        healthy_milli=supply_milli,
        window_gpu_ms=window_gpu_ms,
        ahead_gpu_ms=Fraction(window_gpu_ms * CONFIG.protection_cap_s, CONFIG.window_s),
    )
    tree = build_tree(accounts, capacity)
    issued = issue(tree, supply_milli=supply_milli, config=CONFIG)
    return Division(tree, issued, order_leaves(tree, CONFIG))


def rank_by_hand(tree: Tree, transparent: Collection[str] = ()) -> tuple[Ranked, ...]:
    """Return the leaves as Slurm's Fair Tree ranks them, first to be served first.

    Args:
        tree: The tree of a division.
        transparent: The accounts whose share is ``parent``.
    """
    return rank(
        Association(
            path=node.path,
            share=None if node.path in transparent else node.share,
            used=0 if node.children else node.used_gpu_ms,
        )
        for node in tree.nodes.values()
    )
