"""The division and the order for a tree written by hand: a calculator, a teaching aid, a test bench.

It is the policy itself (``issue`` and ``fair_share``) without a ledger: what a cycle reads from the journal is
given instead. Only what needs a clock is left out: nobody runs and nothing waits, so the floor of the order
never applies, and siblings stand by their ratios alone.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from gpuledger.policy.credits import issue_by_credits
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


@dataclass(frozen=True, slots=True)
class Quantum:
    """What one quantum gave, by credits.

    Args:
        issue: What each account is issued, and what is left idle.
        credits: What each account has afterwards, in GPUs through a quantum.
    """

    issue: Issue
    credits: Mapping[str, Fraction]


def play_by_hand(
    accounts: Sequence[AccountState],
    demands: Iterable[Mapping[str, int]],
    *,
    supply_milli: int,
    start: Fraction | int,
    shared_permille: int,
) -> tuple[Quantum, ...]:
    """Divide a supply by credits, quantum after quantum.

    Args:
        accounts: The tree; what it asks for and used counts for nothing here.
        demands: For each quantum, account -> milli-GPU; accounts that are left out ask for nothing.
        supply_milli: Milli-GPU there are in each quantum.
        start: Credits of every account before the first.
        shared_permille: The part of every supply that is the siblings' pool.
    """
    capacity = Capacity(healthy_milli=supply_milli, window_gpu_ms=0, ahead_gpu_ms=0)
    played: list[Quantum] = []
    balances: dict[str, Fraction] = {}
    for demand in demands:
        asking = [replace(account, demand_milli=demand.get(account.account, 0)) for account in accounts]
        tree = build_tree(asking, capacity)
        divided = issue_by_credits(
            tree,
            supply_milli=supply_milli,
            balances={path: balances.get(path, Fraction(start)) for path in tree.nodes},
            shared_permille=shared_permille,
        )
        balances |= {path: balances.get(path, Fraction(start)) + gain for path, gain in divided.gains.items()}
        played.append(Quantum(divided.issue, dict(sorted(balances.items()))))
    return tuple(played)


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
