"""What is going to happen: a heap whose order leaves nothing to chance.

Events of one instant come by kind, and those of one kind in the order in which they were put down.
"""

from enum import IntEnum
from heapq import heappop, heappush
from typing import Any


class Kind(IntEnum):
    """What is going to happen; of one instant, in this order.

    Intervals are half-open: what ends at an instant is over before anything else of that instant happens, so a run
    that is done when its grace is over, or when its host fails, is done.
    """

    ENDS = 0
    """A run is through: its work, and the time that nobody closes it after that; or its time limit."""
    GRACE_OVER = 1
    MENDED = 2
    """A host is healthy again."""
    FAILS = 3
    """A host goes down at once."""
    DRAINS = 4
    """Somebody wants to repair a host once it is empty."""
    GIVES_UP = 5
    """The user of a waiting job loses patience."""
    SUBMITS = 6
    FOLLOWS = 7
    """A job is submitted because another is over."""
    WAKES = 8
    """The world wants to be asked."""


class Calendar:
    """Events to come.

    What is put down stays until its instant: whoever takes an event sees whether it is still true.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, Kind, int, Any]] = []
        self._count = 0

    def put(self, at_s: int, kind: Kind, subject: Any) -> None:  # noqa: ANN401 - each kind has one of its own
        """Put an event down."""
        self._count += 1
        heappush(self._heap, (at_s, kind, self._count, subject))

    def next_s(self) -> int | None:
        """Return the instant of the first event; None when there is none."""
        return self._heap[0][0] if self._heap else None

    def take(self) -> tuple[Kind, Any]:
        """Return the first event, and forget it."""
        _, kind, _, subject = heappop(self._heap)
        return kind, subject
