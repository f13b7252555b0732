"""A broker that dies and comes back on the data that it had."""

import time

import pytest
from infra.kafka.nodes import Broker as Node
from tests.brokers.reading import numbered, poll_until_it_fails, publish, read, take

from gpuledger.kernel.errors import Unavailable
from gpuledger.streams.kafka import KafkaBroker
from gpuledger.streams.protocol import Message, Publisher
from gpuledger.streams.topics import Topic

pytestmark = pytest.mark.durable_broker


def test_a_killed_broker_is_unavailable_and_has_lost_nothing_when_it_is_back(
    killable_kafka: Node, kafka_broker: KafkaBroker, topic: Topic
) -> None:
    publish(kafka_broker, topic, numbered(1000))
    subscriber = kafka_broker.subscriber(topic)
    subscriber.assign({0: 0})
    seen = take(subscriber, 400, limit=100)
    publisher = kafka_broker.publisher()
    publisher.publish(topic, numbered(10, first=1000))
    publisher.flush()

    killable_kafka.kill()

    with pytest.raises(Unavailable, match=killable_kafka.bootstrap):
        poll_until_it_fails(subscriber, into=seen)
    began = time.monotonic()
    with pytest.raises(Unavailable):
        _publish_and_flush(kafka_broker.publisher(), topic)
    with pytest.raises(Unavailable):
        _publish_and_flush(publisher, topic)
    assert time.monotonic() - began < 24

    killable_kafka.start()

    seen += take(subscriber, 1010 - len(seen))
    assert [(record.position, int(record.value)) for record in seen[:1010]] == [(n, n) for n in range(1010)]
    assert [int(r.value) for r in read(kafka_broker, topic, 600, positions={0: 410})[:600]] == list(
        range(410, 1010)
    )

    publisher.publish(topic, [Message("k", b"again")])
    publisher.close()
    end = subscriber.end_positions()[0]
    assert read(kafka_broker, topic, 1, positions={0: end - 1})[0].value == b"again"
    subscriber.close()


def _publish_and_flush(publisher: Publisher, topic: Topic) -> None:
    publisher.publish(topic, numbered(1, first=1010))
    publisher.flush()
