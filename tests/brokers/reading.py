"""Short ways to publish and to read a known number of records."""

import time
from collections.abc import Iterable, Mapping

from gpuledger.streams.protocol import Broker, Message, Record, Subscriber
from gpuledger.streams.topics import Topic


def publish(broker: Broker, topic: Topic, messages: Iterable[Message]) -> None:
    """Store messages and close the publisher."""
    publisher = broker.publisher()
    publisher.publish(topic, messages)
    publisher.close()


def read(
    broker: Broker, topic: Topic, count: int, *, positions: Mapping[int, int] | None = None
) -> list[Record]:
    """Open a subscriber, read until ``count`` records have come, and close it."""
    subscriber = broker.subscriber(topic)
    try:
        subscriber.assign({0: 0} if positions is None else positions)
        return take(subscriber, count)
    finally:
        subscriber.close()


def take(subscriber: Subscriber, count: int, *, limit: int = 1000, within_s: float = 60) -> list[Record]:
    """Poll until ``count`` records have come."""
    records: list[Record] = []
    deadline = time.monotonic() + within_s
    while len(records) < count:
        records += subscriber.poll(limit, 0.5)
        assert time.monotonic() < deadline, f"{len(records)} of {count} records came in {within_s} s"
    return records


def numbered(count: int, *, first: int = 0, key: str = "k") -> list[Message]:
    """Return messages whose values are consecutive numbers."""
    return [Message(key, b"%d" % number) for number in range(first, first + count)]


def poll_until_it_fails(
    subscriber: Subscriber, *, into: list[Record] | None = None, within_s: float = 12
) -> None:
    """Poll on; what the client had already fetched may still arrive."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        records = subscriber.poll(100, 0.2)
        if into is not None:
            into += records
