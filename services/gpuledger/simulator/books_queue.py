"""Who waits, kept from facts, and who came and went since a cycle was told. Pure."""

from collections import Counter
from collections.abc import Callable, Collection

from gpuledger.policy.ordering import Turnout
from gpuledger.policy.state import PendingWorkload
from gpuledger.simulator.books_traffic import Traffic


class Queue:
    """Who waits.

    Attributes:
        pending: The workloads by name. Only to be looked at.
    """

    def __init__(self) -> None:
        self.pending: dict[str, PendingWorkload] = {}
        self._traffic = Traffic[PendingWorkload]()
        self._accounts: Counter[str] = Counter()
        """How many wait of each account that has any."""

    def join(self, waits: PendingWorkload) -> None:
        """Let a workload wait."""
        self.pending[waits.workload] = waits
        self._traffic.come(waits.workload, waits)
        self._accounts[waits.account] += 1

    def leave(self, name: str) -> PendingWorkload | None:
        """Let a workload wait no more, and return it; None where none waits under that name."""
        waited = self.pending.pop(name, None)
        if waited is not None:
            self._traffic.go(name, waited)
            self._accounts[waited.account] -= 1
            if not self._accounts[waited.account]:
                del self._accounts[waited.account]
        return waited

    def change(self, changed: Callable[[PendingWorkload], PendingWorkload]) -> None:
        """Let everybody ask for something else, or for the same, which returns the same object."""
        for name, waits in self.pending.items():
            otherwise = changed(waits)
            if otherwise is not waits:
                self._traffic.go(name, waits)
                self.pending[name] = otherwise
                self._traffic.come(name, otherwise)

    def of_one_account(self) -> Collection[PendingWorkload]:
        """Return all that waits, if something does and all of it is work of one account; else nothing."""
        return self.pending.values() if len(self._accounts) == 1 else ()

    def turnout(self) -> Turnout:
        """Return who waits otherwise than when this was last asked."""
        return Turnout(*self._traffic.told())
