"""Streams on Kafka; the only module that knows the client.

Readers belong to no consumer group and commit nothing to the broker: their positions live in the
ledger's transaction, and they say where they start.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition, errors
from kafka.partitioner.default import murmur2

from gpuledger.kernel.errors import NotFound, Refused, Unavailable
from gpuledger.streams.limits import MAX_VALUE_BYTES, Timeouts, check_size
from gpuledger.streams.protocol import Message, PositionLost, Record
from gpuledger.streams.topics import Topic

_ROOM_BYTES = 1 << 20
"""What a key, headers and framing may add to the largest value."""

_MAX_MESSAGE_BYTES = MAX_VALUE_BYTES + _ROOM_BYTES
_MAX_RESPONSE_BYTES = 2 * MAX_VALUE_BYTES
_FETCH_BYTES = 8 << 20
"""How much one request reads ahead. A larger message still arrives, alone."""

_IDLE_FETCH_MS = 100
"""How long the broker holds a request for news; anything else we ask it waits behind."""

_BATCH_BYTES = 1 << 20
_LINGER_MS = 20
_QUEUE_BYTES = 32 << 20
"""The client queues without bound, so the publisher waits for the broker at this size."""

LOST_HINT = "the topic was truncated or created anew: restore it, or start the reader anew on purpose"

_LOST = (errors.OffsetOutOfRangeError, errors.NoOffsetForPartitionError, errors.LogTruncationError)
_TOPIC_SETTINGS = {
    # History is deleted by decision, never by the age that happens to be a broker's default.
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
    "max.message.bytes": str(_MAX_MESSAGE_BYTES),
}

_log = logging.getLogger("kafka")
if _log.level == logging.NOTSET:
    # The client logs every failed connection that we already report once, as Unavailable.
    _log.setLevel(logging.CRITICAL)


class KafkaBroker:
    """The topics of one Kafka cluster. Nothing connects before it is used.

    Args:
        bootstrap: ``host:port[,host:port]``.
        partitions: How many partitions a new topic gets. An existing topic keeps those it has.
        timeouts: How long anything waits.
    """

    def __init__(self, bootstrap: str, *, partitions: int = 1, timeouts: Timeouts | None = None) -> None:
        self._bootstrap = bootstrap
        self._partitions = partitions
        self.timeouts = timeouts or Timeouts()

    def ensure_topics(self, topics: Sequence[Topic]) -> None:
        """Create the topics that do not exist yet and wait until they can be used.

        Raises:
            Unavailable: When the broker cannot be reached or refuses.
        """
        with self.talking(), self._admin() as admin:
            existing = set(admin.list_topics())
            for topic in topics:
                if topic not in existing:
                    self._create(admin, topic)
            admin.wait_for_topics(list(topics), timeout_ms=_ms(self.timeouts.request_s))

    def partitions(self, topic: Topic) -> Sequence[int]:
        """Return the partitions of an existing topic.

        Raises:
            NotFound: When the topic does not exist.
            Unavailable: When the broker cannot be reached.
        """
        with self.talking(), self._admin() as admin:
            described = admin.describe_topics([topic])
        found = sorted(p["partition_index"] for d in described for p in d["partitions"])
        if not found:
            raise NotFound(
                f"topic {topic} does not exist on {self._bootstrap}", hint="create the topic first"
            )
        return found

    def publisher(self) -> "KafkaPublisher":
        """Open a publisher."""
        return KafkaPublisher(self)

    def subscriber(self, topic: Topic) -> "KafkaSubscriber":
        """Open a subscriber; nothing is read before ``assign``."""
        return KafkaSubscriber(self, topic)

    def connect(self, client: Callable[..., Any], **settings: object) -> Any:  # noqa: ANN401 - untyped client
        """Open a connection of the given kind.

        Raises:
            Unavailable: When nobody answers in time.
        """
        network: list[Any] = []

        def open_network(**options: object) -> Any:  # noqa: ANN401
            network.append(client.DEFAULT_CONFIG["kafka_client"](**options))  # type: ignore[attr-defined]
            return network[-1]

        with self.talking():
            try:
                return client(
                    bootstrap_servers=self._bootstrap.split(","),
                    client_id="gpuledger",
                    bootstrap_timeout_ms=_ms(self.timeouts.connect_s),
                    request_timeout_ms=_ms(self.timeouts.request_s),
                    reconnect_backoff_max_ms=1000,
                    kafka_client=open_network,
                    **settings,
                )
            except errors.KafkaError:
                # A client that fails to connect leaves its thread and sockets behind.
                for opened in network:
                    opened.close()
                raise

    @contextmanager
    def talking(self) -> Iterator[None]:
        """Turn the client's errors into what they mean to a caller, while the block talks to the broker.

        Raises:
            PositionLost: When the broker does not hold the position.
            Refused: When the broker takes no message of that size.
            Unavailable: For everything else: it can be tried again.
        """
        try:
            yield
        except _LOST as error:
            raise PositionLost(f"Kafka no longer holds the position: {error}", hint=LOST_HINT) from error
        except (errors.MessageSizeTooLargeError, errors.RecordListTooLargeError) as error:
            raise Refused(
                f"Kafka at {self._bootstrap} refuses a message of that size: {error}",
                hint=f"set the topic's max.message.bytes to {_MAX_MESSAGE_BYTES}",
            ) from error
        except errors.KafkaError as error:
            raise Unavailable(
                f"Kafka at {self._bootstrap} did not answer as needed: {error}",
                hint="check that GPULEDGER_KAFKA_BOOTSTRAP names a running broker, then try again",
            ) from error

    @contextmanager
    def _admin(self) -> Iterator[Any]:
        admin = self.connect(KafkaAdminClient)
        try:
            yield admin
        finally:
            admin.close()

    def _create(self, admin: Any, topic: Topic) -> None:  # noqa: ANN401 - the client has no types
        wanted = {topic: {"num_partitions": self._partitions, "configs": _TOPIC_SETTINGS}}
        try:
            admin.create_topics(wanted, timeout_ms=_ms(self.timeouts.request_s))
        except errors.TopicAlreadyExistsError:
            return  # another process was faster


class KafkaPublisher:
    """Sends messages with acknowledgement by every replica in sync, none twice. Not shared between threads.

    After ``Unavailable`` what was queued may or may not be stored: publish again all that followed the
    last flush.
    """

    def __init__(self, broker: KafkaBroker) -> None:
        self._broker = broker
        self._producer: Any = None
        self._partitions: dict[Topic, Sequence[int]] = {}
        self._queued_bytes = 0
        self._failure: Exception | None = None

    def publish(self, topic: Topic, messages: Iterable[Message]) -> None:
        """Queue messages in order; those before a refused one stay queued.

        Raises:
            Refused: When a value is larger than ``MAX_VALUE_BYTES`` or than the broker takes.
            NotFound: When the topic does not exist.
            Unavailable: When the broker cannot be reached.
        """
        if topic not in self._partitions:
            self._partitions[topic] = self._broker.partitions(topic)
        partitions = self._partitions[topic]
        producer = self._connected()
        with self._broker.talking():
            for message in messages:
                check_size(topic, message)
                key, value = message.key.encode(), message.value
                partition = partitions[_hash(key) % len(partitions)]
                producer.send(topic, value, key=key, partition=partition).add_errback(self._note)
                self._queued_bytes += len(value) + len(key)
                if self._failure is not None or self._queued_bytes >= _QUEUE_BYTES:
                    self.flush()

    def flush(self) -> None:
        """Return when every queued message is stored on every replica in sync.

        Raises:
            Refused: When the broker takes no message of that size.
            Unavailable: When a message could not be stored in time.
        """
        if self._producer is None:
            return
        self._queued_bytes = 0
        try:
            self._producer.flush(timeout=self._broker.timeouts.delivery_s + self._broker.timeouts.request_s)
        except errors.KafkaError as error:
            self._note(error)
        failure, self._failure = self._failure, None
        if failure is not None:
            # Messages behind the lost one must not be stored before it is published again.
            self._abandon()
            with self._broker.talking():
                raise failure

    def close(self) -> None:
        """Flush and release the connection."""
        try:
            self.flush()
        finally:
            self._abandon()

    def _connected(self) -> Any:  # noqa: ANN401 - the client has no types
        if self._producer is None:
            timeouts = self._broker.timeouts
            self._producer = self._broker.connect(
                KafkaProducer,
                acks="all",
                enable_idempotence=True,
                delivery_timeout_ms=_ms(timeouts.delivery_s),
                max_block_ms=_ms(timeouts.request_s),
                max_request_size=_MAX_MESSAGE_BYTES,
                # Every install can read it, and where the client's checksum is plain Python, computing
                # that over fewer bytes saves more than compressing costs.
                compression_type="gzip",
                batch_size=_BATCH_BYTES,
                linger_ms=_LINGER_MS,
                allow_auto_create_topics=False,
                metrics_enabled=False,
            )
        return self._producer

    def _note(self, error: Exception) -> None:
        """Keep the first failure; called from the client's thread."""
        if self._failure is None:
            self._failure = error

    def _abandon(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close(timeout=1)


class KafkaSubscriber:
    """Reads the partitions of one topic without a consumer group. Not shared between threads.

    An empty poll means that nothing arrived in time, not that the end was reached: ask
    ``end_positions`` for that.
    """

    def __init__(self, broker: KafkaBroker, topic: Topic) -> None:
        self._broker = broker
        self._topic = topic
        self._consumer: Any = None
        self._positions: dict[int, int] = {}

    def assign(self, positions: Mapping[int, int]) -> None:
        """Start at the next offset to read of each partition (0 for the beginning).

        Raises:
            PositionLost: When the broker holds no such offset, not even as the next one.
            NotFound: When a partition that was never read does not exist.
            Unavailable: When the broker cannot be reached.
        """
        self._require(positions)
        self._check(positions)
        self._positions = dict(positions)
        with self._broker.talking():
            self._consumer.assign([self._at(partition) for partition in positions])
            for partition, offset in positions.items():
                self._consumer.seek(self._at(partition), offset)

    def poll(self, limit: int, timeout_s: float) -> Sequence[Record]:
        """Return up to ``limit`` next records, in order per partition; empty after the timeout.

        Before it returns nothing it makes sure that the broker answers and still holds the positions;
        otherwise a broker that is down would look like a stream without news.

        Raises:
            PositionLost: When the topic was truncated or created anew meanwhile.
            Unavailable: When the broker cannot be reached.
        """
        if not self._positions:
            return []
        with self._broker.talking():
            fetched = self._consumer.poll(timeout_ms=_ms(timeout_s), max_records=limit)
        records = [
            Record(self._topic, place.partition, record.offset, record.value or b"")
            for place, batch in fetched.items()
            for record in batch
        ]
        for record in records:
            self._positions[record.partition] = record.position + 1
        if not records:
            self._check(self._positions)
        return records

    def end_positions(self) -> Mapping[int, int]:
        """Return, for each assigned partition, the offset that the next published record will get.

        Raises:
            Unavailable: When the broker cannot be reached.
        """
        return self._offsets("end_offsets", self._positions)

    def close(self) -> None:
        """Release the connection."""
        consumer, self._consumer = self._consumer, None
        self._positions = {}
        if consumer is not None:
            consumer.close(autocommit=False, timeout_ms=1000)

    def _require(self, positions: Mapping[int, int]) -> None:
        """Make sure that the partitions exist; the client would wait for a missing one until it times out."""
        try:
            existing = self._broker.partitions(self._topic)
        except NotFound:
            if not any(positions.values()):
                raise
            existing = ()
        for partition, offset in positions.items():
            if partition not in existing:
                gone = f"partition {partition} of topic {self._topic} does not exist"
                if offset:
                    raise PositionLost(f"{gone}, the reader was at {offset}", hint=LOST_HINT)
                raise NotFound(gone, hint="list the partitions of the topic first")

    def _check(self, positions: Mapping[int, int]) -> None:
        first = self._offsets("beginning_offsets", positions)
        end = self._offsets("end_offsets", positions)
        for partition, offset in positions.items():
            if not first[partition] <= offset <= end[partition]:
                raise PositionLost(
                    f"partition {partition} of topic {self._topic} holds {first[partition]} up to"
                    f" {end[partition]}, the reader was at {offset}",
                    hint=LOST_HINT,
                )

    def _offsets(self, which: str, partitions: Iterable[int]) -> dict[int, int]:
        consumer = self._connected()
        wanted = [self._at(partition) for partition in partitions]
        if not wanted:
            return {}
        with self._broker.talking():
            found = getattr(consumer, which)(wanted, timeout_ms=_ms(self._broker.timeouts.request_s))
        return {place.partition: offset for place, offset in found.items()}

    def _connected(self) -> Any:  # noqa: ANN401 - the client has no types
        if self._consumer is None:
            self._consumer = self._broker.connect(
                KafkaConsumer,
                group_id=None,
                enable_auto_commit=False,
                auto_offset_reset="none",
                fetch_max_wait_ms=_IDLE_FETCH_MS,
                fetch_max_bytes=4 * _FETCH_BYTES,
                max_partition_fetch_bytes=_FETCH_BYTES,
                receive_message_max_bytes=_MAX_RESPONSE_BYTES,
                allow_auto_create_topics=False,
                metrics_enabled=False,
            )
        return self._consumer

    def _at(self, partition: int) -> Any:  # noqa: ANN401 - the client has no types
        return TopicPartition(self._topic, partition)


@lru_cache(maxsize=1 << 16)
def _hash(key: bytes) -> int:
    """Hash a key as Java producers do, so that theirs and ours land in one partition."""
    return int(murmur2(key)) & 0x7FFFFFFF


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
