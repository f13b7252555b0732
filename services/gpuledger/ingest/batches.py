"""Records of one partition that are booked together, understood before that: as a rule while the batch before is."""

from collections import deque
from collections.abc import Callable, Sequence

from gpuledger.database.meanwhile import Ahead
from gpuledger.events.envelope import Event
from gpuledger.ingest.dead_letters import DeadLetter
from gpuledger.streams.protocol import Record

Understood = tuple[list[Event], list[DeadLetter]]
"""What could be read of a batch, and what could not."""

Understand = Callable[[Sequence[Record]], Understood]
"""Reads values; it raises nothing for what cannot be read."""

READ_AT_ONCE = 32
"""Records that are read between two looks at whether the database has answered: a fraction of a millisecond."""


class Batch:
    """Records of one partition, in order.

    Args:
        records: One at least.
        understand: Reads them.
        at_once: How many of them it is given at a time; None for all, where what it finds of one hangs on others.
    """

    def __init__(self, records: Sequence[Record], understand: Understand, at_once: int | None) -> None:
        self.records, self._understand, self._at_once = records, understand, at_once
        step = at_once or len(records)
        self._parts = Ahead(understand(records[n : n + step]) for n in range(0, len(records), step))

    @property
    def partition(self) -> int:
        """The partition that they are of."""
        return self.records[0].partition

    @property
    def work(self) -> Callable[[], bool] | None:
        """Understands some more of them, for who has to wait; None where that cannot be done ahead."""
        return self._parts.work if self._at_once else None

    def understood(self) -> Understood:
        """Return what they say, once."""
        events: list[Event] = []
        letters: list[DeadLetter] = []
        for some, unread in self._parts:
            events += some
            letters += unread
        return events, letters

    def halves(self) -> tuple["Batch", "Batch"]:
        """Return two batches with the same records, as nothing of them was understood yet."""
        middle = len(self.records) // 2
        first, second = self.records[:middle], self.records[middle:]
        return Batch(first, self._understand, self._at_once), Batch(second, self._understand, self._at_once)


def batches(
    records: Sequence[Record], most: int, understand: Understand, at_once: int | None
) -> deque[Batch]:
    """Return what was polled as batches of so many records at most: partition after partition."""
    by_partition: dict[int, list[Record]] = {}
    for record in records:
        by_partition.setdefault(record.partition, []).append(record)
    return deque(
        Batch(own[first : first + most], understand, at_once)
        for _, own in sorted(by_partition.items())
        for first in range(0, len(own), most)
    )
