"""The topics of a Kafka cluster."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

from kafka import errors
from kafka.admin import ConfigResource, ConfigResourceType

from gpuledger.streams.kafka.connection import MAX_MESSAGE_BYTES, Connection, milliseconds
from gpuledger.streams.kafka.group import KafkaGroup
from gpuledger.streams.kafka.publisher import KafkaPublisher
from gpuledger.streams.kafka.security import Security
from gpuledger.streams.kafka.subscriber import KafkaSubscriber
from gpuledger.streams.limits import Timeouts
from gpuledger.streams.topics import PLANS, Described, Plan, Topic

DAY_MS = 86_400_000
FOR_EVER = "-1"
_RETENTION = "retention.ms"


class KafkaBroker:
    """The topics of one Kafka cluster. Nothing connects before it is used.

    Args:
        bootstrap: ``host:port[,host:port]``.
        partitions: How many partitions a new topic gets, instead of those of its plan.
        timeouts: How long anything waits.
        security: How the client and the brokers know each other.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        partitions: int | None = None,
        timeouts: Timeouts | None = None,
        security: Security | None = None,
    ) -> None:
        self._connection = Connection(bootstrap, timeouts or Timeouts(), security)
        self._partitions = partitions

    def ensure_topics(self, topics: Sequence[Topic], plan: Plan | None = None) -> Sequence[Topic]:
        """Create the topics that do not exist yet, and wait until they can be used; return those created.

        Raises:
            Refused: When this client may not.
            Unavailable: When the broker cannot be reached or refuses.
        """
        request_ms = milliseconds(self._connection.timeouts.request_s)
        with self._connection.admin() as admin:
            missing = [topic for topic in topics if topic not in set(admin.list_topics())]
            created = [
                topic
                for topic in missing
                if self._create(admin, topic, plan or PLANS.get(topic, Plan()), request_ms)
            ]
            admin.wait_for_topics(list(topics), timeout_ms=request_ms)
        return created

    def describe(self, topics: Sequence[Topic]) -> Sequence[Described]:
        """Return how topics are, whether they exist or not.

        Raises:
            Unavailable: When the broker cannot be reached.
        """
        with self._connection.admin() as admin:
            existing = set(admin.list_topics())
            found = [topic for topic in topics if topic in existing]
            asked = [ConfigResource(ConfigResourceType.TOPIC, topic) for topic in found]
            configs = admin.describe_configs(asked, config_filter="all")["topic"] if asked else {}
        described = []
        for topic in topics:
            if topic not in existing:
                described.append(Described(topic))
                continue
            partitions = self.partitions(topic)
            with closing(self.subscriber(topic)) as subscriber:
                first = subscriber.first_positions(partitions)
                subscriber.assign(first)
                records = sum(subscriber.end_positions().values()) - sum(first.values())
            kept = configs[topic][_RETENTION]["value"]
            days = None if kept == FOR_EVER else int(kept) // DAY_MS
            described.append(Described(topic, len(partitions), records, days))
        return described

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

    def group(self, topic: Topic, name: str) -> KafkaGroup:
        """Return a consumer group of the topic; it is the broker's, but its positions are not."""
        return KafkaGroup(self._connection, topic, name)

    def _create(self, admin: Any, topic: Topic, plan: Plan, timeout_ms: int) -> bool:  # noqa: ANN401 - untyped client
        kept = FOR_EVER if plan.retention_days is None else str(plan.retention_days * DAY_MS)
        configs = {
            _RETENTION: kept,
            "retention.bytes": FOR_EVER,
            "cleanup.policy": "delete",
            "max.message.bytes": str(MAX_MESSAGE_BYTES),
        }
        partitions = self._partitions or plan.partitions
        try:
            admin.create_topics(
                {topic: {"num_partitions": partitions, "configs": configs}}, timeout_ms=timeout_ms
            )
        except errors.TopicAlreadyExistsError:
            return False  # another process was faster
        return True
