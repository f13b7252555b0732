"""What is published arrives once, through restarts and whatever the broker refuses."""

import random

import pytest
from infra.kafka.nodes import Broker as Node
from kafka import KafkaAdminClient
from tests.brokers.reading import numbered, read

from gpuledger.kernel.errors import Refused
from gpuledger.streams.kafka import KafkaBroker
from gpuledger.streams.limits import Timeouts
from gpuledger.streams.protocol import Message
from gpuledger.streams.topics import Topic

pytestmark = pytest.mark.durable_broker


def test_a_publisher_survives_a_restart_within_its_delivery_time(killable_kafka: Node, topic: Topic) -> None:
    broker = KafkaBroker(killable_kafka.bootstrap, timeouts=Timeouts(delivery_s=90))
    broker.ensure_topics([topic])
    publisher = broker.publisher()
    publisher.publish(topic, numbered(100))
    publisher.flush()

    killable_kafka.kill()
    publisher.publish(topic, numbered(100, first=100))
    killable_kafka.start()
    publisher.publish(topic, numbered(100, first=200))
    publisher.close()

    assert [int(record.value) for record in read(broker, topic, 300)] == list(range(300))


def test_a_message_larger_than_the_topic_takes_is_refused_and_names_the_setting(
    apache_kafka: Node, topic: Topic, admin: KafkaAdminClient
) -> None:
    admin.create_topics({topic: {"num_partitions": 1, "configs": {"max.message.bytes": "1000"}}})
    publisher = KafkaBroker(apache_kafka.bootstrap).publisher()
    incompressible = random.Random(1).randbytes(5000)
    publisher.publish(topic, [Message("k", incompressible)])

    with pytest.raises(Refused) as raised:
        publisher.flush()

    assert "max.message.bytes" in raised.value.hint
    publisher.close()
