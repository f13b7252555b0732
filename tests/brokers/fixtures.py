"""Real brokers for tests: one Kafka for the whole session, started when the first test asks for it.

A test folder's conftest names what it needs, and what that needs in turn::

    from tests.brokers import fixtures

    kafka_bootstrap = fixtures.kafka_bootstrap
    empty_kafka = fixtures.empty_kafka

- ``kafka_bootstrap``: ``host:port`` of whichever broker can be had; mark the test ``kafka``.
- ``empty_kafka``: the same, and none of the product's topics exists on it; needs the former.
- ``apache_kafka``: Apache Kafka itself, which can be killed and started again on the same data; mark the
  test ``durable_broker``. Without Apache Kafka such a test fails with instructions.
- ``killable_kafka``: the same for one test, running again afterwards whatever the test did; needs the former.
"""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from infra.kafka.broker import KINDS, find_kind
from infra.kafka.nodes import Broker
from infra.kafka.programs import INSTALL
from kafka import KafkaAdminClient
from kafka.errors import UnknownTopicOrPartitionError

from gpuledger.streams.topics import TOPICS

# Read before the session's clean environment hides them from the tests.
_JARS = "GPULEDGER_KAFKA_JARS"
_jars_folder = os.environ.get(_JARS)
_kind = os.environ.get("GPULEDGER_TEST_BROKER")  # apache, docker or tansu; unset means the best to be had


class _Shared:
    """The one node of a session: every conftest that imports a fixture makes a fixture of its own of it."""

    def __init__(self) -> None:
        self._node: Broker | None = None
        self._users = 0

    @contextmanager
    def used(self, folders: pytest.TempPathFactory) -> Iterator[Broker]:
        self._users += 1
        try:
            yield self._started(folders)
        finally:
            self._users -= 1
            if self._users == 0 and self._node is not None:
                node, self._node = self._node, None
                node.remove()

    def _started(self, folders: pytest.TempPathFactory) -> Broker:
        if self._node is None:
            with pytest.MonkeyPatch.context() as patch:
                if _jars_folder is not None:
                    patch.setenv(_JARS, _jars_folder)
                node = KINDS[_kind or find_kind()](folders.mktemp("kafka"))
                node.start()
            self._node = node
            if not node.durable:
                warnings.warn(f"tests run on {node.name} instead of Apache Kafka; {INSTALL}", stacklevel=2)
        return self._node


_shared = _Shared()


@pytest.fixture(scope="session")
def kafka_bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """``host:port`` of a running broker that speaks Kafka."""
    with _shared.used(tmp_path_factory) as node:
        yield node.bootstrap


@pytest.fixture
def empty_kafka(kafka_bootstrap: str) -> str:
    """``host:port`` of a running broker without any of the product's topics."""
    admin = KafkaAdminClient(bootstrap_servers=kafka_bootstrap)
    try:
        for topic in TOPICS:
            try:
                admin.delete_topics([topic])
            except UnknownTopicOrPartitionError:
                continue
    finally:
        admin.close()
    return kafka_bootstrap


@pytest.fixture(scope="session")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Apache Kafka: ``bootstrap``, ``kill()`` and ``start()`` on the same data."""
    with _shared.used(tmp_path_factory) as node:
        if not node.durable:
            pytest.fail(f"this test kills the broker and needs Apache Kafka: {INSTALL}")
        yield node


@pytest.fixture
def killable_kafka(apache_kafka: Broker) -> Iterator[Broker]:
    """Apache Kafka for a test that kills it."""
    yield apache_kafka
    if not apache_kafka.running:
        apache_kafka.kill()
        apache_kafka.start()
