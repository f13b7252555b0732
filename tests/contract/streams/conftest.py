"""The brokers that the stream contract runs on."""

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
from infra.kafka.nodes import Broker as Node
from kafka import KafkaAdminClient
from tests.brokers import fixtures

from gpuledger.streams.files import FileBroker
from gpuledger.streams.kafka import KafkaBroker
from gpuledger.streams.limits import Timeouts
from gpuledger.streams.protocol import Broker
from gpuledger.streams.topics import Topic

apache_kafka = fixtures.apache_kafka
kafka_bootstrap = fixtures.kafka_bootstrap
killable_kafka = fixtures.killable_kafka

IMPATIENT = Timeouts(connect_s=3, request_s=3, delivery_s=5)

OpenBroker = Callable[[int], Broker]

_numbers = itertools.count(1)


@pytest.fixture
def topic() -> Topic:
    """A topic that no other test uses; brokers do not care that its name is none of ours."""
    return cast("Topic", f"test.{os.getpid()}.{next(_numbers)}")


@pytest.fixture(params=["files", pytest.param("kafka", marks=pytest.mark.kafka)])
def open_broker(request: pytest.FixtureRequest, tmp_path: Path) -> OpenBroker:
    """Opens a broker that gives new topics so many partitions; for 0 those of their plan."""
    if request.param == "files":
        return lambda partitions: FileBroker(tmp_path / "streams", partitions=partitions or 1)
    bootstrap = request.getfixturevalue("kafka_bootstrap")
    return lambda partitions: KafkaBroker(bootstrap, partitions=partitions or None)


@pytest.fixture
def broker(open_broker: OpenBroker, topic: Topic) -> Broker:
    """A broker on which ``topic`` exists with one partition and holds nothing."""
    opened = open_broker(1)
    opened.ensure_topics([topic])
    return opened


@pytest.fixture
def kafka_broker(apache_kafka: Node, topic: Topic) -> KafkaBroker:
    """Apache Kafka with ``topic`` on it, given up after a few seconds."""
    opened = KafkaBroker(apache_kafka.bootstrap, timeouts=IMPATIENT)
    opened.ensure_topics([topic])
    return opened


@pytest.fixture
def admin(apache_kafka: Node) -> Iterator[KafkaAdminClient]:
    """The client's own administration, to do to a topic what an operator may do."""
    client = KafkaAdminClient(bootstrap_servers=apache_kafka.bootstrap)
    yield client
    client.close()
