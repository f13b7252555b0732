"""The work that waits, by account and in its order there, kept from one cycle to the next. Pure.

What is summed up along the order of an account is made anew only after somebody came or went there.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush, merge
from itertools import count

from gpuledger.policy.contenders import Contender
from gpuledger.policy.fair_share import Entering
from gpuledger.policy.lines import ELIGIBLE, WORKLOAD, Entry, Line, Sums
from gpuledger.policy.occupancy import Occupancy
from gpuledger.policy.state import PendingWorkload, PolicyConfig, WorkClass
from gpuledger.policy.tree import Tree

_Pile = tuple[str, WorkClass]
"""An account's work, as of that class where all shares on its path are above 0."""


class Backlog:
    """Who waits for a place in the queue or has one.

    Args:
        config: The knobs.
        occupancy: The hosts; they stay the same, whoever runs there.

    Attributes:
        accounts: How many wait of each account.
    """

    def __init__(self, config: PolicyConfig, occupancy: Occupancy) -> None:
        self._entering = Entering(config)
        self._occupancy = occupancy
        self._counter = count()
        self._later: list[tuple[int, int, PendingWorkload]] = []
        self._outside: dict[str, PendingWorkload] = {}
        """Who is not yet eligible."""
        self._placed: dict[str, tuple[_Pile, Entry]] = {}
        self._piles: dict[_Pile, list[Entry]] = {}
        self._sums: dict[tuple[_Pile, WorkClass], Sums] = {}
        self._oldest: dict[_Pile, int] = {}
        self.accounts: Counter[str] = Counter()

    def follow(self, gone: Iterable[PendingWorkload], come: Iterable[PendingWorkload], at_s: int) -> None:
        """Bring it up to date.

        Args:
            gone: Who waits no more, or not as before.
            come: Who waits from now on.
            at_s: The instant, not before that of the look before.
        """
        for workload in gone:
            self._drop(workload)
        joining = list[PendingWorkload]()
        while self._later and self._later[0][0] <= at_s:
            _, _, workload = heappop(self._later)
            if self._outside.get(workload.workload) is workload:
                del self._outside[workload.workload]
                joining.append(workload)
        for workload in come:
            self.accounts[workload.account] += 1
            if not self._occupancy.is_possible(workload.gpus_milli, workload.gpu_model):
                continue
            if workload.eligible_at_s <= at_s:
                joining.append(workload)
            else:
                self._outside[workload.workload] = workload
                heappush(self._later, (workload.eligible_at_s, next(self._counter), workload))
        self._place(joining)

    def oldest_s(self) -> dict[str, int]:
        """Return since when the oldest of each account is eligible that takes a place in the queue."""
        found: dict[str, int] = {}
        for pile, entries in self._piles.items():
            if pile not in self._oldest:
                self._oldest[pile] = min([entry[ELIGIBLE] for entry in entries])
            account, _ = pile
            found[account] = min(found.get(account, self._oldest[pile]), self._oldest[pile])
        return found

    def placed(self, workload: str) -> PendingWorkload | None:
        """Return who waits under a name, if it takes a place in the queue."""
        found = self._placed.get(workload)
        return None if found is None else found[1][WORKLOAD]

    def by_leaf(self, tree: Tree) -> dict[WorkClass, dict[str, Sums]]:
        """Return the work of each class, by the leaf where it counts."""
        found: dict[WorkClass, dict[str, list[_Pile]]] = {"allocated": {}, "unallocated": {}}
        for pile in self._piles:
            account, klass = pile
            leaf = tree.leaf_path(account)
            funded = tree.nodes[leaf].funded
            found[klass if funded else "unallocated"].setdefault(leaf, []).append(pile)
        return {
            klass: {leaf: self._summed(piles, klass) for leaf, piles in leaves.items()}
            for klass, leaves in found.items()
        }

    def _summed(self, piles: list[_Pile], klass: WorkClass) -> Sums:
        key = piles[0], klass
        if len(piles) == 1 and key in self._sums:
            return self._sums[key]
        found: Iterable[Entry] = merge(*(self._piles[pile] for pile in piles))
        if any(of != klass for _, of in piles):
            found = (self._entering.entry_of(entry[WORKLOAD], klass) for entry in found)
        sums = Sums(list(found))
        if len(piles) == 1:
            self._sums[key] = sums
        return sums

    def _place(self, joining: Iterable[PendingWorkload]) -> None:
        joined: dict[_Pile, list[Entry]] = {}
        for workload in joining:
            klass: WorkClass = "allocated" if workload.minimum_runtime_s > 0 else "unallocated"
            pile, entry = (workload.account, klass), self._entering.entry_of(workload, klass)
            self._placed[workload.workload] = pile, entry
            joined.setdefault(pile, []).append(entry)
        for pile, entries in joined.items():
            there = self._piles.setdefault(pile, [])
            if len(entries) == 1:
                insort(there, entries[0])
            else:
                there += entries
                there.sort()
            self._forget(pile)

    def _drop(self, workload: PendingWorkload) -> None:
        self.accounts[workload.account] -= 1
        if not self.accounts[workload.account]:
            del self.accounts[workload.account]
        self._outside.pop(workload.workload, None)
        pile, entry = self._placed.pop(workload.workload, (None, None))
        if pile is None or entry is None:
            return
        entries = self._piles[pile]
        del entries[bisect_left(entries, entry)]
        if not entries:
            del self._piles[pile]
        self._forget(pile)

    def _forget(self, pile: _Pile) -> None:
        self._sums.pop((pile, "allocated"), None)
        self._sums.pop((pile, "unallocated"), None)
        self._oldest.pop(pile, None)


def line_of(waiting: Mapping[str, Sums]) -> Callable[[Contender], Line]:
    """Return what gives the line of a leaf.

    Args:
        waiting: The work by leaf.
    """

    def line(leaf: Contender) -> Line:
        sums = waiting.get(leaf.path)
        return Line(leaf, ()) if sums is None else Line(leaf, sums.entries, sums=sums)

    return line
