"""What every broker promises; each test runs on files and on Kafka."""

import time
from collections import defaultdict
from typing import cast

import pytest
from tests.brokers.reading import numbered, publish, read, take
from tests.contract.streams.conftest import OpenBroker

from gpuledger.kernel.errors import NotFound, Refused
from gpuledger.streams.limits import MAX_VALUE_BYTES
from gpuledger.streams.protocol import Broker, Message, PositionLost
from gpuledger.streams.topics import Plan, Topic


def test_what_was_published_is_read_in_order_from_position_zero(broker: Broker, topic: Topic) -> None:
    publish(broker, topic, numbered(5))

    records = read(broker, topic, 5)

    assert [record.value for record in records] == [b"0", b"1", b"2", b"3", b"4"]
    assert [(record.topic, record.partition, record.position) for record in records] == [
        (topic, 0, position) for position in range(5)
    ]


def test_equal_keys_share_a_partition_and_keep_their_order(open_broker: OpenBroker, topic: Topic) -> None:
    broker = open_broker(3)
    broker.ensure_topics([topic])
    assert list(broker.partitions(topic)) == [0, 1, 2]
    publish(broker, topic, (Message(f"cluster-{n % 7}", b"%d %d" % (n % 7, n)) for n in range(2000)))

    records = read(broker, topic, 2000, positions={0: 0, 1: 0, 2: 0})

    by_key, homes, positions = defaultdict(list), defaultdict(set), defaultdict(list)
    for record in records:
        key, number = map(int, record.value.split())
        by_key[key].append(number)
        homes[key].add(record.partition)
        positions[record.partition].append(record.position)
    assert by_key == {key: list(range(key, 2000, 7)) for key in range(7)}
    assert {len(home) for home in homes.values()} == {1}
    assert len(positions) > 1, "seven keys should not all fall into one of three partitions"
    assert all(found == list(range(len(found))) for found in positions.values())


def test_a_reader_resumes_at_the_position_it_kept(broker: Broker, topic: Topic) -> None:
    publish(broker, topic, numbered(100))
    stored = read(broker, topic, 100)[41].position + 1

    records = read(broker, topic, 58, positions={0: stored})

    assert [int(record.value) for record in records] == list(range(42, 100))


def test_a_stream_that_lost_nothing_begins_at_position_zero(broker: Broker, topic: Topic) -> None:
    publish(broker, topic, numbered(3))
    subscriber = broker.subscriber(topic)

    assert subscriber.first_positions([0]) == {0: 0}
    assert subscriber.first_positions([]) == {}

    subscriber.close()


def test_assigning_again_reads_again(broker: Broker, topic: Topic) -> None:
    publish(broker, topic, numbered(10))
    subscriber = broker.subscriber(topic)
    subscriber.assign({0: 0})
    take(subscriber, 10)

    subscriber.assign({0: 3})

    assert take(subscriber, 7)[0].value == b"3"
    subscriber.close()


def test_the_end_is_the_position_of_the_next_record(broker: Broker, topic: Topic) -> None:
    subscriber = broker.subscriber(topic)
    subscriber.assign({0: 0})
    assert subscriber.end_positions() == {0: 0}

    publish(broker, topic, numbered(7))
    assert subscriber.end_positions() == {0: 7}

    take(subscriber, 7)
    assert subscriber.end_positions() == {0: 7}
    publish(broker, topic, numbered(1))
    assert subscriber.end_positions() == {0: 8}
    subscriber.close()


def test_an_empty_poll_returns_in_time(broker: Broker, topic: Topic) -> None:
    subscriber = broker.subscriber(topic)
    subscriber.assign({0: 0})
    subscriber.poll(10, 0.1)  # the first one connects

    began = time.monotonic()
    records = subscriber.poll(10, 0.3)

    assert list(records) == []
    assert 0.2 < time.monotonic() - began < 2
    subscriber.close()


def test_news_arrives_while_a_reader_waits_at_the_end(broker: Broker, topic: Topic) -> None:
    publish(broker, topic, numbered(3))
    subscriber = broker.subscriber(topic)
    subscriber.assign({0: 3})
    assert list(subscriber.poll(10, 0.1)) == []

    publish(broker, topic, numbered(2, first=3))

    assert [record.value for record in take(subscriber, 2)] == [b"3", b"4"]
    subscriber.close()


def test_a_poll_returns_no_more_than_its_limit_and_skips_nothing(broker: Broker, topic: Topic) -> None:
    publish(broker, topic, numbered(100))
    subscriber = broker.subscriber(topic)
    subscriber.assign({0: 0})

    numbers: list[int] = []
    while len(numbers) < 100:
        records = subscriber.poll(7, 1.0)
        assert len(records) <= 7
        numbers += [int(record.value) for record in records]

    assert numbers == list(range(100))
    subscriber.close()


def test_a_position_beyond_the_end_is_lost(broker: Broker, topic: Topic) -> None:
    publish(broker, topic, numbered(5))
    subscriber = broker.subscriber(topic)

    subscriber.assign({0: 5})  # the end itself is where a reader waits
    with pytest.raises(PositionLost, match="6"):
        subscriber.assign({0: 6})
    subscriber.close()


def test_a_large_message_arrives_whole(broker: Broker, topic: Topic) -> None:
    large = b'{"hosts":"' + b"0123456789abcdef" * 655_360 + b'"}'  # 10 MB
    publish(broker, topic, [Message("k", b"before"), Message("k", large), Message("k", b"after")])

    records = read(broker, topic, 3)

    assert [len(record.value) for record in records] == [6, len(large), 5]
    assert records[1].value == large


def test_every_byte_but_the_line_end_is_kept(broker: Broker, topic: Topic) -> None:
    values = [
        bytes(byte for byte in range(256) if byte != ord("\n")),
        "Zürich, Größe, naïve".encode("latin-1"),
        b"\r",
        b" \t ",
        b"",
        b"\xff\xfe\x00",
    ]
    publish(broker, topic, [Message("Schlüssel", value) for value in values])

    assert [record.value for record in read(broker, topic, len(values))] == values


def test_a_publisher_that_is_opened_again_continues(broker: Broker, topic: Topic) -> None:
    for first in (0, 10, 20):
        publish(broker, topic, numbered(10, first=first))

    assert [int(record.value) for record in read(broker, topic, 30)] == list(range(30))


def test_two_publishers_at_once_lose_nothing(broker: Broker, topic: Topic) -> None:
    left, right = broker.publisher(), broker.publisher()
    for number in range(50):
        left.publish(topic, [Message("left", b"left %d" % number)])
        right.publish(topic, [Message("right", b"right %d" % number)])
        if number % 10 == 0:
            left.flush()
    right.close()
    left.close()

    values = [record.value for record in read(broker, topic, 100)]

    assert [value for value in values if value.startswith(b"left")] == [b"left %d" % n for n in range(50)]
    assert [value for value in values if value.startswith(b"right")] == [b"right %d" % n for n in range(50)]


def test_many_messages_arrive_once_each(broker: Broker, topic: Topic, test_form: str) -> None:
    count = {"short": 20_000, "full": 200_000}[test_form]
    padding = b"x" * 300
    publish(broker, topic, (Message(str(n % 50), b"%d %s" % (n, padding)) for n in range(count)))

    records = read(broker, topic, count)

    assert [int(record.value.split()[0]) for record in records] == list(range(count))


def test_creating_a_topic_again_keeps_what_it_holds(broker: Broker, topic: Topic) -> None:
    publish(broker, topic, numbered(3))

    broker.ensure_topics([topic])

    assert len(read(broker, topic, 3)) == 3


def test_a_topic_that_does_not_exist_is_an_error_not_an_empty_stream(
    open_broker: OpenBroker, topic: Topic
) -> None:
    broker = open_broker(1)
    publisher = broker.publisher()

    with pytest.raises(NotFound, match=topic):
        broker.partitions(topic)
    with pytest.raises(NotFound, match=topic):
        publisher.publish(topic, numbered(1))
    with pytest.raises(NotFound, match=topic):
        broker.subscriber(topic).assign({0: 0})
    publisher.close()


def test_a_topic_that_vanished_has_lost_the_position(open_broker: OpenBroker, topic: Topic) -> None:
    with pytest.raises(PositionLost, match="7"):
        open_broker(1).subscriber(topic).assign({0: 7})


def test_a_partition_that_does_not_exist_is_refused(broker: Broker, topic: Topic) -> None:
    subscriber = broker.subscriber(topic)

    with pytest.raises(NotFound):
        subscriber.assign({0: 0, 5: 0})
    subscriber.close()


def test_a_value_beyond_the_largest_is_refused_and_those_before_it_are_kept(
    broker: Broker, topic: Topic
) -> None:
    publisher = broker.publisher()

    with pytest.raises(Refused, match="bytes"):
        publisher.publish(topic, [Message("k", b"small"), Message("k", bytes(MAX_VALUE_BYTES + 1))])
    publisher.close()

    assert read(broker, topic, 1)[0].value == b"small"


def test_nothing_assigned_means_nothing_read(broker: Broker, topic: Topic) -> None:
    subscriber = broker.subscriber(topic)
    subscriber.assign({})

    assert list(subscriber.poll(10, 0.05)) == []
    assert subscriber.end_positions() == {}
    subscriber.close()


def test_the_oldest_record_is_the_first_that_was_published(broker: Broker, topic: Topic) -> None:
    subscriber = broker.subscriber(topic)
    assert subscriber.first_positions([0]) == {0: 0}
    publish(broker, topic, numbered(3))
    assert subscriber.first_positions([0]) == {0: 0}
    subscriber.close()


def test_a_topic_is_made_after_a_plan_and_described(
    open_broker: OpenBroker, broker: Broker, topic: Topic
) -> None:
    planned, missing = (cast("Topic", f"{topic}.{end}") for end in ("planned", "missing"))
    plan = Plan(partitions=2, retention_days=7)
    unplanned = open_broker(0)
    assert list(unplanned.ensure_topics([planned], plan)) == [planned]
    assert list(unplanned.ensure_topics([planned], Plan(partitions=5))) == [], "it keeps what it has"
    publish(broker, planned, (Message(f"k{n}", b"x") for n in range(9)))

    found = broker.describe([topic, planned, missing])

    assert [(d.topic, d.partitions, d.records) for d in found] == [
        (topic, 1, 0),
        (planned, 2, 9),
        (missing, 0, 0),
    ]
    assert found[0].retention_days is None
    assert found[1].retention_days in {7, None}, "files are kept for ever"
