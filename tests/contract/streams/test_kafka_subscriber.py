"""What an operator can do to a topic, a reader must notice."""

import time

import pytest
from kafka import KafkaAdminClient, TopicPartition
from tests.brokers.reading import numbered, poll_until_it_fails, publish, take

from gpuledger.streams.kafka import KafkaBroker
from gpuledger.streams.protocol import PositionLost
from gpuledger.streams.topics import Topic

pytestmark = pytest.mark.durable_broker


def test_history_deleted_below_the_position_is_noticed_when_the_reader_comes_back(
    kafka_broker: KafkaBroker, topic: Topic, admin: KafkaAdminClient
) -> None:
    publish(kafka_broker, topic, numbered(100))
    admin.delete_records({TopicPartition(topic, 0): 50})
    subscriber = kafka_broker.subscriber(topic)

    assert subscriber.first_positions([0]) == {0: 50}
    with pytest.raises(PositionLost, match="50 up to 100, the reader was at 49"):
        subscriber.assign({0: 49})
    subscriber.assign({0: 50})

    assert take(subscriber, 50)[0].value == b"50"
    subscriber.close()


def test_history_deleted_while_a_reader_is_behind_is_noticed(
    kafka_broker: KafkaBroker, topic: Topic, admin: KafkaAdminClient
) -> None:
    publish(kafka_broker, topic, numbered(100))
    subscriber = kafka_broker.subscriber(topic)
    subscriber.assign({0: 0})

    admin.delete_records({TopicPartition(topic, 0): 50})

    with pytest.raises(PositionLost):
        poll_until_it_fails(subscriber)
    subscriber.close()


def test_a_topic_created_anew_is_noticed_by_a_reader_and_by_the_next_one(
    kafka_broker: KafkaBroker, topic: Topic, admin: KafkaAdminClient
) -> None:
    publish(kafka_broker, topic, numbered(100))
    subscriber = kafka_broker.subscriber(topic)
    subscriber.assign({0: 0})
    take(subscriber, 100)

    admin.delete_topics([topic])
    _until_gone(admin, topic)
    kafka_broker.ensure_topics([topic])
    publish(kafka_broker, topic, numbered(3))

    with pytest.raises(PositionLost):
        poll_until_it_fails(subscriber)
    subscriber.close()
    with pytest.raises(PositionLost, match="0 up to 3, the reader was at 100"):
        kafka_broker.subscriber(topic).assign({0: 100})


def _until_gone(admin: KafkaAdminClient, topic: Topic) -> None:
    deadline = time.monotonic() + 30
    while topic in admin.list_topics():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_record_says_when_it_was_published(kafka_broker: KafkaBroker, topic: Topic) -> None:
    before_ms = time.time_ns() // 1_000_000
    publish(kafka_broker, topic, numbered(1))
    subscriber = kafka_broker.subscriber(topic)
    subscriber.assign({0: 0})
    (record,) = take(subscriber, 1)
    assert record.published_ms is not None
    assert before_ms - 1000 <= record.published_ms <= time.time_ns() // 1_000_000
    subscriber.close()


def test_the_oldest_record_that_is_still_held(
    kafka_broker: KafkaBroker, topic: Topic, admin: KafkaAdminClient
) -> None:
    publish(kafka_broker, topic, numbered(100))
    admin.delete_records({TopicPartition(topic, 0): 50})
    subscriber = kafka_broker.subscriber(topic)
    assert subscriber.first_positions([0]) == {0: 50}
    subscriber.close()
    assert kafka_broker.describe([topic])[0].records == 50
