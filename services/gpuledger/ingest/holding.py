"""The partitions that a worker holds: its claims to them, and where it reads on."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import sqlalchemy as sa

from gpuledger.database.engine import Reader, Writer, reading
from gpuledger.ingest import offsets
from gpuledger.ingest.offsets import Claim
from gpuledger.ledger.attempts import booked
from gpuledger.ledger.copying import driver
from gpuledger.streams.topics import Topic


class Holding:
    """What one worker holds of a topic. Whoever takes a partition fences the one that held it before.

    Args:
        engine: The database.
        consumer: Whose positions they are.
        topic: The topic.
        notify: Told which partitions come and go.
    """

    def __init__(
        self, engine: sa.Engine, consumer: str, topic: Topic, notify: Callable[[str], None] = lambda _: None
    ) -> None:
        self._engine, self._consumer, self._topic, self._notify = engine, consumer, topic, notify
        self.claims: dict[int, Claim] = {}
        self.positions: dict[int, int] = {}
        """The next position to read of each partition that is held."""

    def take(self, partitions: Sequence[int]) -> Mapping[int, int]:
        """Take partitions over; return the next position to read of each.

        Raises:
            Unavailable: When the database cannot be reached.
        """
        claims = booked(
            self._engine, None, lambda writer: offsets.claim(writer, self._consumer, self._topic, partitions)
        )
        taken = {claim.partition: claim.position for claim in claims}
        self.claims |= {claim.partition: claim for claim in claims}
        self.positions |= taken
        if taken:
            self._notify(f"{self._topic}: reads {_named(taken)}")
        return taken

    def release(self, partitions: Sequence[int]) -> None:
        """Forget partitions that others read from now on."""
        for partition in partitions:
            self.claims.pop(partition, None)
            self.positions.pop(partition, None)
        if partitions:
            self._notify(f"{self._topic}: leaves {_named(partitions)} to others")

    def check(self, writer: Writer, *, last: bool = False) -> None:  # noqa: ARG002 - the Guard protocol
        """Make sure, under the locks of their rows, that all of them are still held.

        Raises:
            Fenced: When another worker took one over.
        """
        for partition in sorted(self.claims):
            offsets.advance(writer, self.claims[partition], None)

    def passed(self, ends: Mapping[int, int]) -> bool:
        """Tell whether everything up to there is booked, by this worker or by those that hold the other partitions."""
        if any(self.positions.get(partition, end) < end for partition, end in ends.items()):
            return False
        others = ends.keys() - self.positions.keys()
        return not others or passed(self._stored(), {partition: ends[partition] for partition in others})

    def _stored(self) -> Mapping[int, int]:
        with reading(self._engine) as reader:
            return offsets.positions(reader, self._consumer, self._topic)


def _named(partitions: Iterable[int]) -> str:
    return f"partitions {', '.join(map(str, sorted(partitions)))}"


def passed(positions: Mapping[int, int], ends: Mapping[int, int]) -> bool:
    """Tell whether positions have come up to all the ends; a partition without one was never read."""
    return all(positions.get(partition, 0) >= end for partition, end in ends.items())


def group_name(reader: Reader, consumer: str, topic: Topic) -> str:
    """Return the name of the group of workers that read a topic into this very database.

    Ledgers that are fed by one topic must not share it: each of them has to have all of it.
    """
    row = driver(reader).execute(
        "SELECT system_identifier, (SELECT oid FROM pg_database WHERE datname = current_database())"
        " FROM pg_control_system()"
    ).fetchone()  # fmt: skip
    assert row is not None  # noqa: S101 - one row always
    return f"gpuledger-{consumer}-{topic}-{row[0] & (1 << 64) - 1:x}-{row[1]}"
