"""Publishing to Kafka."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from kafka import KafkaProducer, errors
from kafka.partitioner.default import murmur2

from gpuledger.streams.kafka.connection import MAX_MESSAGE_BYTES, Connection, milliseconds
from gpuledger.streams.limits import check_size
from gpuledger.streams.protocol import Message
from gpuledger.streams.topics import Topic

_BATCH_BYTES = 1 << 20
_LINGER_MS = 20
_QUEUE_BYTES = 32 << 20
"""The client queues without bound, so the publisher waits for the broker at this size."""


class KafkaPublisher:
    """Sends messages with acknowledgement by every replica in sync, none twice. Not shared between threads.

    After ``Unavailable`` what was queued may or may not be stored: publish again all that followed the
    last flush.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
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
            self._partitions[topic] = self._connection.partitions(topic)
        partitions = self._partitions[topic]
        producer = self._connected()
        with self._connection.talking():
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
        timeouts = self._connection.timeouts
        try:
            self._producer.flush(timeout=timeouts.delivery_s + timeouts.request_s)
        except errors.KafkaError as error:
            self._note(error)
        failure, self._failure = self._failure, None
        if failure is not None:
            # Messages behind the lost one must not be stored before it is published again.
            self._abandon()
            with self._connection.talking():
                raise failure

    def close(self) -> None:
        """Flush and release the connection."""
        try:
            self.flush()
        finally:
            self._abandon()

    def _connected(self) -> Any:  # noqa: ANN401 - the client has no types
        if self._producer is None:
            timeouts = self._connection.timeouts
            self._producer = self._connection.open(
                KafkaProducer,
                acks="all",
                enable_idempotence=True,
                delivery_timeout_ms=milliseconds(timeouts.delivery_s),
                max_block_ms=milliseconds(timeouts.request_s),
                max_request_size=MAX_MESSAGE_BYTES,
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


@lru_cache(maxsize=1 << 16)
def _hash(key: bytes) -> int:
    """Hash a key as Java producers do, so that theirs and ours land in one partition."""
    return int(murmur2(key)) & 0x7FFFFFFF
