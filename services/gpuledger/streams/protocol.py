"""What a stream is: ordered records per partition, read from a position that the reader keeps.

Two brokers implement it, files and Kafka; one contract suite runs on both. Positions live in the
ledger's own transaction, never in the broker, so a reader always says where it starts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gpuledger.kernel.errors import Corrupt
from gpuledger.streams.topics import Described, Plan, Topic


@dataclass(frozen=True, slots=True)
class Message:
    """A value to publish; equal keys share a partition and keep their order."""

    key: str
    value: bytes


@dataclass(frozen=True, slots=True)
class Record:
    """A value that was read, with its place in the stream.

    Args:
        topic: The topic it was read from.
        partition: The partition within the topic.
        position: Its offset (Kafka) or line number counted from 0 (files).
        value: The bytes exactly as published.
        published_ms: When it was published, milliseconds since the epoch; None where the broker does not say.
    """

    topic: Topic
    partition: int
    position: int
    value: bytes
    published_ms: int | None = None


class PositionLost(Corrupt):
    """The stream no longer holds the stored position, or holds a shorter history than was read.

    Raised instead of restarting silently: a truncated or re-created topic would be booked in part.
    """


class Publisher(Protocol):
    """Writes messages; ``flush`` returns only when all are stored.

    Delivery is at least once: after ``Unavailable``, publish again all that followed the last flush.
    """

    def publish(self, topic: Topic, messages: Iterable[Message]) -> None:
        """Queue messages in order.

        Raises:
            Unavailable: When the broker cannot be reached.
        """
        ...

    def flush(self) -> None:
        """Wait until every queued message is stored.

        Raises:
            Unavailable: When a message could not be stored.
        """
        ...

    def close(self) -> None:
        """Flush and release the connection."""
        ...


class Feed(Protocol):
    """Records of one topic, as they come."""

    def poll(self, limit: int, timeout_s: float) -> Sequence[Record]:
        """Return up to ``limit`` next records, in order per partition; empty after the timeout.

        Raises:
            PositionLost: When the stream was truncated below the position meanwhile.
            Unavailable: When the broker cannot be reached.
        """
        ...

    def end_positions(self) -> Mapping[int, int]:
        """Return the position that the next published record of each partition will get.

        Of a subscriber's assigned partitions; of a member of a group, of all that the topic has.
        """
        ...

    def close(self) -> None:
        """Release the connection."""
        ...


class Subscriber(Feed, Protocol):
    """Reads one topic from given positions."""

    def assign(self, positions: Mapping[int, int]) -> None:
        """Start at the next position to read of each partition (0 for the beginning).

        Raises:
            PositionLost: When a position lies outside what the stream still holds.
            Unavailable: When the broker cannot be reached.
        """
        ...

    def first_positions(self, partitions: Sequence[int]) -> Mapping[int, int]:
        """Return, for each partition, the position of the oldest record that is still held, or will be the next."""
        ...


class Holder(Protocol):
    """Keeps where a member of a group reads on. It is called while the member polls, and by its client's thread."""

    def take(self, partitions: Sequence[int]) -> Mapping[int, int]:
        """Take partitions over; return the next position to read of each."""
        ...

    def release(self, partitions: Sequence[int]) -> None:
        """Forget partitions that others read from now on."""
        ...


class Group(Protocol):
    """Workers that share the partitions of one topic: each partition is read by one of them at a time."""

    def members(self) -> int:
        """Return how many workers there are, the ones included that have stopped to answer only just now.

        Raises:
            Unavailable: When the broker cannot be reached.
        """
        ...

    def join(self, holder: Holder, name: str | None = None) -> Feed:
        """Become one of them; which partitions that brings, and takes away, the holder is told within ``poll``.

        Args:
            holder: Keeps the positions.
            name: A name by which a member that starts again is known and has its partitions back at once.
        """
        ...


class Broker(Protocol):
    """Opens publishers and subscribers."""

    def ensure_topics(self, topics: Sequence[Topic], plan: Plan | None = None) -> Sequence[Topic]:
        """Create the topics that do not exist yet, each after its own plan unless one is given; return those."""
        ...

    def describe(self, topics: Sequence[Topic]) -> Sequence[Described]:
        """Return how topics are, whether they exist or not."""
        ...

    def partitions(self, topic: Topic) -> Sequence[int]:
        """Return the partitions of an existing topic."""
        ...

    def publisher(self) -> Publisher:
        """Open a publisher."""
        ...

    def subscriber(self, topic: Topic) -> Subscriber:
        """Open a subscriber; nothing is read before ``assign``."""
        ...

    def group(self, topic: Topic, name: str) -> Group | None:
        """Return a group of workers that share a topic; None where one worker reads it alone."""
        ...
