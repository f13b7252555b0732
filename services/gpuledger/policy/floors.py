"""Which runs floors keep while others' work looks for room. Pure."""

from collections.abc import Iterable

from gpuledger.kernel.accounts import lineage
from gpuledger.policy.ranking import Ranking

Taken = dict[str, int]
"""The smallest run that an account loses, in milli-GPU, by account: what one search has taken so far."""


class Floors:
    """Running GPUs by account as runs are taken, and their floors.

    An account is not pushed below its floor; but for runs any one of which would put it beyond its present entitlement.
    Such a gang is not let start by the floor either: ratios decide of both, and what is taken is made good by them.

    Args:
        ranking: The accounts as they stand at the beginning of the cycle.
    """

    def __init__(self, ranking: Ranking) -> None:
        self._running = {path: node.running_milli for path, node in ranking.tree.nodes.items()}
        self._ranking = ranking
        self._paths: dict[str, tuple[str, ...]] = {}
        self._losers: dict[tuple[str, str], tuple[str, ...]] = {}

    def count(self, leaf: str, gpus_milli: int) -> None:
        """Count GPUs as running at a leaf, fewer when negative."""
        for account in self._path(leaf):
            self._running[account] += gpus_milli

    def losers(self, leaf: str, side: str) -> tuple[str, ...]:
        """Return who loses by a run of a leaf that leaves for work beside an account of its path.

        It is that account and those below it on the path.
        """
        found = self._losers.get((leaf, side))
        if found is None:
            found = tuple(account for account in self._path(leaf) if len(account) >= len(side))
            self._losers[leaf, side] = found
        return found

    def let_go(self, accounts: Iterable[str], gpus_milli: int, taken: Taken) -> bool:
        """Say whether a run may go, and note it as taken if it may.

        Whatever may go together may go in part, and in any order.

        Args:
            accounts: Those of its path that lose by it.
            gpus_milli: The run.
            taken: What goes besides.
        """
        least = {account: min(taken.get(account, gpus_milli), gpus_milli) for account in accounts}
        floor_milli, present_milli = self._ranking.floor_milli, self._ranking.present_milli
        for account, least_milli in least.items():
            stays_milli = self._running[account] - gpus_milli
            if stays_milli < floor_milli[account] and stays_milli + least_milli <= present_milli[account]:
                return False
        taken |= least
        return True

    def _path(self, leaf: str) -> tuple[str, ...]:
        """Return the accounts down to a leaf; each is asked for many times."""
        found = self._paths.get(leaf)
        if found is None:
            found = self._paths[leaf] = tuple(lineage(leaf))
        return found
