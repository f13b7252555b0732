"""The work that waits, by account and in its order there, kept from one cycle to the next. Pure.

What is summed up along the order of an account is brought up to date where somebody came or went (``piles``).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush, merge
from itertools import count

from gpuledger.policy.contenders import Contender
from gpuledger.policy.fair_share import Entering
from gpuledger.policy.lines import LONG, WORKLOAD, Entry, Line
from gpuledger.policy.occupancy import Occupancy
from gpuledger.policy.piles import Pile
from gpuledger.policy.state import PendingWorkload, PolicyConfig, WorkClass
from gpuledger.policy.tree import Tree

_Owner = tuple[str, WorkClass]
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
        self._placed: dict[str, tuple[_Owner, Entry]] = {}
        self._piles: dict[_Owner, Pile] = {}
        self._otherwise: dict[_Owner, Pile] = {}
        """Those of them that are of another class, as it is."""
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
        for (account, _), pile in self._piles.items():
            oldest_s = pile.oldest_from(0)
            found[account] = min(found.get(account, oldest_s), oldest_s)
        return found

    def placed(self, workload: str) -> PendingWorkload | None:
        """Return who waits under a name, if it takes a place in the queue."""
        found = self._placed.get(workload)
        return None if found is None else found[1][WORKLOAD]

    def by_leaf(self, tree: Tree) -> dict[WorkClass, dict[str, Pile]]:
        """Return the work of each class, by the leaf where it counts."""
        found: dict[WorkClass, dict[str, list[_Owner]]] = {"allocated": {}, "unallocated": {}}
        for owner in self._piles:
            account, klass = owner
            leaf = tree.leaf_path(account)
            funded = tree.nodes[leaf].funded
            found[klass if funded else "unallocated"].setdefault(leaf, []).append(owner)
        return {
            klass: {leaf: self._together(owners, klass) for leaf, owners in leaves.items()}
            for klass, leaves in found.items()
        }

    def _together(self, owners: list[_Owner], klass: WorkClass) -> Pile:
        """Return the work of some accounts as of a class."""
        piles = [self._as_of(owner, klass) for owner in owners]
        return piles[0] if len(piles) == 1 else Pile(merge(*(pile.entries for pile in piles)))

    def _as_of(self, owner: _Owner, klass: WorkClass) -> Pile:
        if owner[1] == klass:
            return self._piles[owner]
        if owner not in self._otherwise:
            there = (self._entering.entry_of(entry[WORKLOAD], klass) for entry in self._piles[owner])
            self._otherwise[owner] = Pile(there)
        return self._otherwise[owner]

    def _place(self, joining: Iterable[PendingWorkload]) -> None:
        joined: dict[_Owner, list[Entry]] = {}
        for workload in joining:
            klass: WorkClass = "allocated" if workload.minimum_runtime_s > 0 else "unallocated"
            owner, entry = (workload.account, klass), self._entering.entry_of(workload, klass)
            self._placed[workload.workload] = owner, entry
            joined.setdefault(owner, []).append(entry)
        for owner, entries in joined.items():
            self._piles.setdefault(owner, Pile()).add(entries)
            self._otherwise.pop(owner, None)

    def _drop(self, workload: PendingWorkload) -> None:
        self.accounts[workload.account] -= 1
        if not self.accounts[workload.account]:
            del self.accounts[workload.account]
        self._outside.pop(workload.workload, None)
        owner, entry = self._placed.pop(workload.workload, (None, None))
        if owner is None or entry is None:
            return
        self._piles[owner].drop(entry)
        self._otherwise.pop(owner, None)
        if not self._piles[owner]:
            del self._piles[owner]


def line_of(waiting: Mapping[str, Pile]) -> Callable[[Contender], Line]:
    """Return what gives the line of a leaf.

    Args:
        waiting: The work by leaf.
    """

    def line(leaf: Contender) -> Line:
        pile = waiting.get(leaf.path)
        if pile is None:
            return Line(leaf, ())
        return Line(leaf, pile if len(pile) > LONG else pile.entries, sums=pile)

    return line
