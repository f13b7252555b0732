"""Members of a group share a topic: who reads what is the broker's to say, and from where the holder's."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import pytest
from infra.kafka.nodes import Broker as Node
from kafka import KafkaAdminClient, TopicPartition
from tests.brokers.reading import publish

from gpuledger.kernel.errors import GpuledgerError, NotFound, Refused, Unavailable
from gpuledger.streams.kafka import KafkaBroker
from gpuledger.streams.limits import Timeouts
from gpuledger.streams.protocol import Feed, Message, PositionLost
from gpuledger.streams.topics import Topic

pytestmark = pytest.mark.durable_broker

PARTITIONS = 4
SESSION_S = 6.0


class Positions:
    """Where a topic was read, kept by all the members of a test."""

    def __init__(self, stored: dict[int, int] | None = None) -> None:
        self.stored = stored if stored is not None else {}
        self.held: set[int] = set()

    def take(self, partitions: Sequence[int]) -> Mapping[int, int]:
        self.held |= set(partitions)
        return {partition: self.stored.get(partition, 0) for partition in partitions}

    def release(self, partitions: Sequence[int]) -> None:
        self.held -= set(partitions)


class Reading:
    """A member that reads in a thread of its own, as a worker does in its process, until it is stopped or fails."""

    def __init__(self, feed: Feed, holder: Positions, values: list[bytes]) -> None:
        self.feed, self.holder, self._values = feed, holder, values
        self.failure: Exception | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            while not self._stop.is_set():
                records = self.feed.poll(100, 0.5)
                self._values.extend(record.value for record in records)
                self.holder.stored |= {record.partition: record.position + 1 for record in records}
        except GpuledgerError as error:
            self.failure = error

    def stop(self, *, close: bool = True) -> None:
        self._stop.set()
        self._thread.join(60)
        if close:
            self.feed.close()


@pytest.fixture
def shared(apache_kafka: Node, topic: Topic) -> KafkaBroker:
    """Apache Kafka with the topic in four parts, and sessions as short as it allows."""
    timeouts = Timeouts(connect_s=3, request_s=3, delivery_s=5, session_s=SESSION_S)
    broker = KafkaBroker(apache_kafka.bootstrap, partitions=PARTITIONS, timeouts=timeouts)
    broker.ensure_topics([topic])
    return broker


def put(broker: KafkaBroker, topic: Topic, batch: str) -> set[bytes]:
    """Publish messages with as many keys as fill every partition; return their values."""
    values = {f"{batch} {n}".encode() for n in range(40)}
    publish(broker, topic, (Message(value.decode(), value) for value in values))
    return values


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"


def test_members_share_the_partitions_and_each_record_is_read_by_one(
    shared: KafkaBroker, topic: Topic
) -> None:
    group = shared.group(topic, f"{topic}.group")
    assert group.members() == 0
    stored: dict[int, int] = {}
    values: list[bytes] = []
    one, two = Positions(stored), Positions(stored)

    first = Reading(group.join(one), one, values)
    published = put(shared, topic, "alone")
    until(lambda: len(values) >= len(published))
    assert one.held == set(range(PARTITIONS))

    second = Reading(group.join(two), two, values)
    until(lambda: (len(one.held), len(two.held)) == (2, 2))
    assert group.members() == 2
    published |= put(shared, topic, "both")
    until(lambda: len(values) >= len(published))
    assert one.held | two.held == set(range(PARTITIONS))

    second.stop()
    assert two.held == set()
    published |= put(shared, topic, "alone again")
    until(lambda: len(values) >= len(published))
    assert one.held == set(range(PARTITIONS))
    assert dict(first.feed.end_positions()) == stored
    first.stop()
    assert sorted(values) == sorted(published), "none twice"
    until(lambda: group.members() == 0)


def test_the_ends_are_those_of_all_partitions_whoever_reads_them(shared: KafkaBroker, topic: Topic) -> None:
    put(shared, topic, "some")
    member = shared.group(topic, f"{topic}.group").join(Positions())
    ends = member.end_positions()
    member.close()
    assert sorted(ends) == list(range(PARTITIONS))
    assert sum(ends.values()) == 40


def test_one_that_starts_again_under_its_name_has_its_partitions_at_once(
    shared: KafkaBroker, topic: Topic
) -> None:
    group = shared.group(topic, f"{topic}.group")
    before, after, other = Positions(), Positions(), Positions()
    killed, bystander = (
        Reading(group.join(holder, name), holder, []) for holder, name in ((before, "one"), (other, "two"))
    )
    until(lambda: len(before.held) == len(other.held) == 2)
    held, began = set(before.held), time.monotonic()

    again = Reading(group.join(after, "one"), after, [])
    until(lambda: bool(after.held))

    assert after.held == held
    assert time.monotonic() - began < SESSION_S
    for member in (killed, bystander, again):
        member.stop()
    assert bystander.failure is again.failure is None


def test_a_name_that_no_broker_takes_is_refused(shared: KafkaBroker, topic: Topic) -> None:
    for name in ("", "a b", "..", "é", "x" * 250):
        with pytest.raises(Refused, match="cannot be the name"):
            shared.group(topic, "group").join(Positions(), name)


def test_what_the_holder_raises_is_raised_by_the_poll(shared: KafkaBroker, topic: Topic) -> None:
    class Broken(Positions):
        def take(self, partitions: Sequence[int]) -> Mapping[int, int]:
            raise Unavailable(f"no database for {len(partitions)} partitions")

    feed = shared.group(topic, f"{topic}.group").join(Broken())
    with pytest.raises(Unavailable, match="no database for 4 partitions"):
        until(lambda: bool(feed.poll(1, 0.2)))
    feed.close()


@pytest.mark.parametrize("at", [99, 20])
def test_a_position_that_the_broker_does_not_hold_is_lost(
    shared: KafkaBroker, topic: Topic, admin: KafkaAdminClient, at: int
) -> None:
    """One beyond the end, and one of records that were deleted."""
    publish(shared, topic, [Message("k", b"x")] * 40)
    (home,) = [p for p, end in _ends(shared, topic).items() if end]
    admin.delete_records({TopicPartition(topic, home): 30})
    feed = shared.group(topic, f"{topic}.group").join(Positions({home: at}))
    with pytest.raises(PositionLost):
        until(lambda: bool(feed.poll(1, 0.2)))
    feed.close()


def _ends(broker: KafkaBroker, topic: Topic) -> Mapping[int, int]:
    subscriber = broker.subscriber(topic)
    try:
        subscriber.assign(dict.fromkeys(range(PARTITIONS), 0))
        return dict(subscriber.end_positions())
    finally:
        subscriber.close()


def test_a_topic_that_is_missing_and_a_broker_that_is_gone_are_told(
    shared: KafkaBroker, topic: Topic
) -> None:
    missing = cast("Topic", f"{topic}.missing")
    with pytest.raises(NotFound, match="no topic"):
        shared.group(missing, f"{topic}.group").join(Positions()).poll(1, 0.2)
    nobody = KafkaBroker("127.0.0.1:9", timeouts=Timeouts(connect_s=0.5, request_s=0.5))
    with pytest.raises(Unavailable):
        nobody.group(topic, "group").members()
