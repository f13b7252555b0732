"""The runs of a cluster by account: how much of each runs, and which of its runs may leave. Pure.

It is made from the runs at an instant, or brought up to date from one instant to the next.
"""

from collections import Counter
from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import count

from gpuledger.policy.state import RunId, RunningRun

ById = dict[RunId, RunningRun]


class Runs:
    """The runs by account.

    Args:
        runs: Those that there are.
        at_s: The instant.
        quantum_s: How long a start of funded work is safe from other accounts' work.

    Attributes:
        allocated_milli: Milli-GPU of allocated runs, of every account that runs anything.
        unallocated: The unallocated runs: they may always leave.
        unprotected: By account, the allocated runs past their protection: they may leave for its own work.
        takeable: Those of them past their quantum, too: they may leave for others' work.
    """

    def __init__(self, runs: Iterable[RunningRun], at_s: int, quantum_s: int) -> None:
        self._quantum_s = quantum_s
        self._at_s = at_s
        self._counter = count()
        self._count: Counter[str] = Counter()
        self._later: dict[RunId, RunningRun] = {}
        """Those who may leave only later."""
        self._when: list[tuple[int, int, RunningRun]] = []
        self._least: dict[str, int] = {}
        self.allocated_milli: dict[str, int] = {}
        self.unallocated: ById = {}
        self.unprotected: dict[str, ById] = {}
        self.takeable: dict[str, ById] = {}
        self.follow((), runs, at_s)

    def follow(self, gone: Iterable[RunningRun], come: Iterable[RunningRun], at_s: int) -> None:
        """Bring it up to date.

        Args:
            gone: Who is there no more, or not as it was.
            come: Who is there from now on.
            at_s: The instant, not before that of the look before.
        """
        for run in gone:
            self._drop(run)
        self._at_s = at_s
        while self._when and self._when[0][0] <= at_s:
            _, _, run = heappop(self._when)
            if self._later.get(run.id) is run:
                self._sort(run)
        for run in come:
            self._count[run.account] += 1
            milli = run.gpus_milli if run.klass == "allocated" else 0
            self.allocated_milli[run.account] = self.allocated_milli.get(run.account, 0) + milli
            self._sort(run)

    def least_priority(self, account: str) -> int | None:
        """Return the lowest priority of an account's runs that may leave for its own work; None without any."""
        there = self.unprotected.get(account)
        if not there:
            return None
        if account not in self._least:
            self._least[account] = min(run.priority for run in there.values())
        return self._least[account]

    def _sort(self, run: RunningRun) -> None:
        """Put a run where it belongs at the instant."""
        if run.klass == "unallocated":
            self.unallocated[run.id] = run
            return
        later_s = None
        if not run.is_preemptible(self._at_s):
            later_s = run.protected_until_s
        else:
            self.unprotected.setdefault(run.account, {})[run.id] = run
            self._least.pop(run.account, None)
            if run.safe_until_s(self._quantum_s) <= self._at_s:
                self.takeable.setdefault(run.account, {})[run.id] = run
            else:
                later_s = run.safe_until_s(self._quantum_s)
        if later_s is None:
            self._later.pop(run.id, None)
        else:
            self._later[run.id] = run
            heappush(self._when, (later_s, next(self._counter), run))

    def _drop(self, run: RunningRun) -> None:
        self._count[run.account] -= 1
        if run.klass == "allocated":
            self.allocated_milli[run.account] -= run.gpus_milli
        if not self._count[run.account]:
            del self._count[run.account], self.allocated_milli[run.account]
        self.unallocated.pop(run.id, None)
        self._later.pop(run.id, None)
        for groups in (self.unprotected, self.takeable):
            group = groups.get(run.account)
            if group is not None and group.pop(run.id, None) is not None and not group:
                del groups[run.account]
        self._least.pop(run.account, None)
