"""Cycles tried on states that are a little otherwise: the search for the least that lets a workload start. Pure."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TypeVar

from gpuledger.policy.cycle import Action, Cycle
from gpuledger.policy.incremental import Looks
from gpuledger.policy.state import ClusterState, ReservationKind

TRIES_MAX = 150
"""Cycles that the search for one kind of obstacle may take."""

WORK_MAX = 400_000
"""Workloads and runs that these cycles may look at together: in a long queue, fewer cycles."""

_T = TypeVar("_T")


class Outcome(StrEnum):
    """What a cycle has for a workload."""

    WAIT = "wait"
    PROMISE = "promise"
    """Runs are told to leave for it: it starts when the grace is over."""
    START = "start"


class Exhausted(Exception):  # noqa: N818 - no error: one kind of answer is left out
    """No more cycles may be run."""


class Trial:
    """Runs cycles on changed states, up to a number of them, and as long as they take together."""

    def __init__(self, looks: Looks, workload: str, tries_max: int) -> None:
        self._looks, self.workload = looks, workload
        self._tries_left, self._work_left = tries_max, WORK_MAX
        self.needs = Outcome.START
        """What the search is for."""

    def outcome(self, cycle: Cycle) -> Outcome:
        """Return what a cycle has for the workload."""
        if any(d.workload == self.workload and d.action is Action.START for d in cycle.decisions):
            return Outcome.START
        promised = (r.workload for r in cycle.reservations if r.kind is ReservationKind.PROMISE)
        return Outcome.PROMISE if self.workload in promised else Outcome.WAIT

    def does(self, state: ClusterState) -> bool:
        """Say whether the workload gets in this state what the search is for."""
        return self._is_enough(self.comes_of(state))

    def seems_to(self, state: ClusterState) -> bool:
        """Say likewise of a state with other runs or hosts only, in the order of the queue as it is."""
        self._spend(len(state.running) + len(state.hosts))
        return self._is_enough(self.outcome(self._looks.in_the_queue(state)))

    def accept_promises(self, cycle: Cycle) -> None:
        """Search for a promise, too, where the workload has none as it is."""
        if self.outcome(cycle) is Outcome.WAIT:
            self.needs = Outcome.PROMISE

    def comes_of(self, state: ClusterState) -> Outcome:
        """Return what the workload gets in a state."""
        self._spend(len(state.pending) + len(state.running))
        return self.outcome(self._looks.anew(state))

    def least(
        self, items: Sequence[_T], change: Callable[[Sequence[_T]], ClusterState], *, seeming: bool = False
    ) -> tuple[_T, ...] | None:
        """Return the items without which it starts, none of which may stay; None where all together do not do.

        The fewest of the first that suffice are looked for, then each that is not needed is put back. Where cheap
        looks are asked for, what they find is tried once more, with each item left.
        """
        if seeming:
            found = self._least(items, change, self.seems_to)
            if found is None or self._holds(found, change):
                return found
        return self._least(items, change, self.does)

    def _holds(self, found: Sequence[_T], change: Callable[[Sequence[_T]], ClusterState]) -> bool:
        fewer = (_but(found, place) for place in range(len(found)) if len(found) > 1)
        return self.does(change(found)) and not any(self.does(change(one)) for one in fewer)

    def _least(
        self,
        items: Sequence[_T],
        change: Callable[[Sequence[_T]], ClusterState],
        does: Callable[[ClusterState], bool],
    ) -> tuple[_T, ...] | None:
        if not items or not does(change(items)):
            return None
        low, high = 0, 1
        while high < len(items) and not does(change(items[:high])):
            low, high = high, min(2 * high, len(items))
        while high - low > 1:  # all of the first `high` suffice, of the first `low` they do not
            middle = (low + high) // 2
            low, high = (low, middle) if does(change(items[:middle])) else (middle, high)
        chosen, place, kept_in_a_row = list(items[:high]), 0, 0
        # Until all were tried since the last one was put back: then no single one can be.
        while kept_in_a_row < len(chosen) > 1:
            place %= len(chosen)
            fewer = _but(chosen, place)
            if does(change(fewer)):
                chosen, kept_in_a_row = fewer, 0
            else:
                place, kept_in_a_row = place + 1, kept_in_a_row + 1
        return tuple(chosen)

    def _is_enough(self, got: Outcome) -> bool:
        return got is Outcome.START or got is self.needs

    def _spend(self, work: int) -> None:
        if self._tries_left <= 0 or self._work_left <= 0:
            raise Exhausted
        self._tries_left -= 1
        self._work_left -= work


def _but(items: Sequence[_T], place: int) -> list[_T]:
    return [*items[:place], *items[place + 1 :]]
