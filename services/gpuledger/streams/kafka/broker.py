"""The topics of a Kafka cluster."""

from collections.abc import Sequence
from typing import Any

from kafka import errors

from gpuledger.streams.kafka.connection import MAX_MESSAGE_BYTES, Connection, milliseconds
from gpuledger.streams.kafka.publisher import KafkaPublisher
from gpuledger.streams.kafka.subscriber import KafkaSubscriber
from gpuledger.streams.limits import Timeouts
from gpuledger.streams.topics import Topic

_TOPIC_SETTINGS = {
    # History is deleted by decision, never by the age that happens to be a broker's default.
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
    "max.message.bytes": str(MAX_MESSAGE_BYTES),
}


class KafkaBroker:
    """The topics of one Kafka cluster. Nothing connects before it is used.

    Args:
        bootstrap: ``host:port[,host:port]``.
        partitions: How many partitions a new topic gets. An existing topic keeps those it has.
        timeouts: How long anything waits.
    """

    def __init__(self, bootstrap: str, *, partitions: int = 1, timeouts: Timeouts | None = None) -> None:
        self._connection = Connection(bootstrap, timeouts or Timeouts())
        self._partitions = partitions

    def ensure_topics(self, topics: Sequence[Topic]) -> None:
        """Create the topics that do not exist yet and wait until they can be used.

        Raises:
            Unavailable: When the broker cannot be reached or refuses.
        """
        request_ms = milliseconds(self._connection.timeouts.request_s)
        with self._connection.admin() as admin:
            existing = set(admin.list_topics())
            for topic in topics:
                if topic not in existing:
                    self._create(admin, topic, request_ms)
            admin.wait_for_topics(list(topics), timeout_ms=request_ms)

    def partitions(self, topic: Topic) -> Sequence[int]:
        """Return the partitions of an existing topic.

        Raises:
            NotFound: When the topic does not exist.
            Unavailable: When the broker cannot be reached.
        """
        return self._connection.partitions(topic)

    def publisher(self) -> KafkaPublisher:
        """Open a publisher."""
        return KafkaPublisher(self._connection)

    def subscriber(self, topic: Topic) -> KafkaSubscriber:
        """Open a subscriber; nothing is read before ``assign``."""
        return KafkaSubscriber(self._connection, topic)

    def _create(self, admin: Any, topic: Topic, timeout_ms: int) -> None:  # noqa: ANN401 - untyped client
        wanted = {topic: {"num_partitions": self._partitions, "configs": _TOPIC_SETTINGS}}
        try:
            admin.create_topics(wanted, timeout_ms=timeout_ms)
        except errors.TopicAlreadyExistsError:
            return  # another process was faster
