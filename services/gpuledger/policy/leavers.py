"""Who may leave, in which order: of whom leaves for others, and of whom leaves for work of its own account. Pure.

With ``victims: least-work`` whoever loses least comes first: GPUs x the time since its checkpoint, or its start. Of
unallocated runs those come before all others whose accounts used more unallocated time than is their part. With
``victims: most-used`` accounts are ranked, and what is lost decides within one account only.

Lists are made when they are asked for; whether anybody may leave at all is known without.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from typing import TypeVar

from gpuledger.policy.ranking import Ranking
from gpuledger.policy.runs import Runs
from gpuledger.policy.state import RunId, RunningRun

LEAST_WORK = "least-work"


Key = TypeVar("Key")
Value = TypeVar("Value")


class _Remembered(dict[Key, Value]):
    """Values by key, each worked out when it is first looked up."""

    def __init__(self, work_out: Callable[[Key], Value]) -> None:
        super().__init__()
        self._work_out = work_out

    def __missing__(self, key: Key) -> Value:
        """Work a value out, and keep it."""
        value = self[key] = self._work_out(key)
        return value


class Leavers:
    """The runs that may leave at the beginning of a cycle.

    Args:
        runs: The runs at that instant.
        ranking: The accounts as they stand then.
        at_s: The instant.
        victims: The knob: who comes first.

    Attributes:
        by_work: Whether those come first that lose least work, whosever they are.
        leaf: The leaf at which the work of each account counts that runs anything.
    """

    def __init__(self, runs: Runs, ranking: Ranking, at_s: int, victims: str = LEAST_WORK) -> None:
        self.by_work = victims == LEAST_WORK
        self._runs, self._ranking, self._at_s = runs, ranking, at_s
        self.leaf = {account: ranking.tree.leaf_path(account) for account in runs.allocated_milli}
        self._owners: dict[str, list[str]] = defaultdict(list)
        for account, leaf in self.leaf.items():
            self._owners[leaf].append(account)
        self._takeable: dict[str, list[RunningRun]] = {}
        self._own: dict[str, list[RunningRun]] = {}
        self._lost: dict[RunId, int] = {}

    @property
    def free(self) -> Collection[RunningRun]:
        """The unallocated runs, in any order."""
        return self._runs.unallocated.values()

    def in_order(self, free: Collection[RunningRun]) -> list[RunningRun]:
        """Return unallocated runs: of the accounts that used most without paying first, who loses least first."""
        if not free:
            return []
        rank, leaf, at_s = self._ranking.unpaid_rank, self.leaf, self._at_s
        if not self.by_work:
            return sorted(free, key=lambda run: (rank[leaf[run.account]], run.lost_gpu_ms(at_s), run.id))
        beyond = self._ranking.unpaid_beyond

        def key(run: RunningRun) -> tuple[int, int, int, RunId]:
            path = leaf[run.account]
            return beyond[path], run.lost_gpu_ms(at_s), rank[path], run.id

        return sorted(free, key=key)

    def least_loss_first(self, run: RunningRun) -> tuple[int, int, RunId]:
        """Sort key: who loses least comes first, of equals whose account is furthest beyond its share."""
        return run.lost_gpu_ms(self._at_s), self._ranking.excess_rank[self.leaf[run.account]], run.id

    def rank_for(self, asker: str) -> Callable[[RunningRun], tuple[int, ...]]:
        """Return who of those that may leave at once leaves first for a reservation of an account: a key to sort by.

        Those whose accounts are further beyond than the asker's come first, of them who loses least; or whose accounts
        are furthest beyond. How accounts stand is looked up once for each, as there are many runs.
        """
        standing = _Remembered[str, tuple[int, int]](lambda account: self._standing(asker, account))
        lost, at_s = self._lost, self._at_s
        if not self.by_work:
            return lambda run: (standing[run.account][1],)

        def key(run: RunningRun) -> tuple[int, ...]:
            is_within, rank = standing[run.account]
            if (lost_gpu_ms := lost.get(run.id)) is None:
                lost_gpu_ms = lost[run.id] = run.lost_gpu_ms(at_s)
            return is_within, lost_gpu_ms, rank

        return key

    def spared_for(self, asker: str, is_wider: Callable[[int], bool]) -> Callable[[RunningRun], bool]:
        """Return whether a run is not to leave for a reservation as long as others could within the protection cap.

        It is of a larger size class, and its account is not further beyond its share than the asker's.
        """
        within = _Remembered[str, int](lambda account: self._standing(asker, account)[0])
        wider = _Remembered[int, bool](is_wider)
        if not self.by_work:
            return lambda _: False
        return lambda run: bool(run.klass != "unallocated" and wider[run.gpus_milli] and within[run.account])

    def _standing(self, asker: str, account: str) -> tuple[int, int]:
        leaf = self._ranking.tree.leaf_path(account)
        return int(not self._ranking.is_beyond(asker, leaf)), self._ranking.excess_rank[leaf]

    def past_safety(self, asker: str) -> list[RunningRun]:
        """Return the runs past their protection and their quantum, whatever the ratios: those first that leave first.

        With ``least-work`` the runs of accounts further beyond their share than the asker's come first.
        """
        runs = [run for leaf in self.leaves for run in self.takeable(leaf)]
        if self.by_work:
            beyond = {leaf: self._ranking.is_beyond(asker, leaf) for leaf in self.leaves}
            runs.sort(key=lambda run: (not beyond[self.leaf[run.account]], self.least_loss_first(run)))
        return runs

    @cached_property
    def takeable_leaves(self) -> list[str]:
        """The leaves that have runs past their protection and their quantum."""
        return list(dict.fromkeys(self.leaf[account] for account in self._runs.takeable))

    @cached_property
    def leaves(self) -> list[str]:
        """The same, the furthest beyond its share first."""
        return sorted(self.takeable_leaves, key=lambda leaf: self._ranking.excess_rank[leaf])

    def may_leave_for_others(self, leaf: str) -> Iterator[RunningRun]:
        """Yield the runs of a leaf past their protection and their quantum, in any order."""
        return self._of(leaf, self._runs.takeable)

    def takeable(self, leaf: str) -> list[RunningRun]:
        """Return the runs of a leaf past their protection and their quantum, who loses least first."""
        if leaf not in self._takeable:
            at_s, there = self._at_s, self._of(leaf, self._runs.takeable)
            self._takeable[leaf] = sorted(there, key=lambda run: (run.lost_gpu_ms(at_s), run.id))
        return self._takeable[leaf]

    def own(self, leaf: str) -> list[RunningRun]:
        """Return the runs of a leaf that may leave for its own work: the lowest priority first, then the least loss."""
        if leaf not in self._own:
            at_s, there = self._at_s, self._of(leaf, self._runs.unprotected)
            self._own[leaf] = sorted(there, key=lambda run: (run.priority, run.lost_gpu_ms(at_s), run.id))
        return self._own[leaf]

    def may_leave_for_own(self, leaf: str) -> Iterator[RunningRun]:
        """Yield the same runs, in any order."""
        return self._of(leaf, self._runs.unprotected)

    def least_priority(self, leaf: str) -> int | None:
        """Return the lowest priority of these; None without any."""
        found = (self._runs.least_priority(account) for account in self._owners.get(leaf, ()))
        return min((least for least in found if least is not None), default=None)

    @cached_property
    def least_priorities(self) -> dict[str, int]:
        """The lowest priority by leaf that has such runs."""
        found = {leaf: self.least_priority(leaf) for leaf in self._owners}
        return {leaf: least for leaf, least in found.items() if least is not None}

    def _of(self, leaf: str, groups: Mapping[str, Mapping[RunId, RunningRun]]) -> Iterator[RunningRun]:
        for account in self._owners.get(leaf, ()):
            yield from groups.get(account, {}).values()
