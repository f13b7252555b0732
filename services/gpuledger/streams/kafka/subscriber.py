"""Reading from Kafka by position."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from gpuledger.kernel.errors import NotFound
from gpuledger.streams.kafka.connection import LOST_HINT, Connection, milliseconds
from gpuledger.streams.limits import MAX_VALUE_BYTES
from gpuledger.streams.protocol import PositionLost, Record
from gpuledger.streams.topics import Topic

_MAX_RESPONSE_BYTES = 2 * MAX_VALUE_BYTES
_FETCH_BYTES = 8 << 20
"""How much one request reads ahead. A larger message still arrives, alone."""

_IDLE_FETCH_MS = 100
"""How long the broker holds a request for news; anything else we ask it waits behind."""


class KafkaReader:
    """Reads the partitions of one topic that it stands in. Not shared between threads.

    An empty poll means that nothing arrived in time, not that the end was reached: ask
    ``end_positions`` for that.
    """

    def __init__(self, connection: Connection, topic: Topic) -> None:
        self._connection = connection
        self._topic = topic
        self._consumer: Any = None
        self._positions: dict[int, int] = {}

    def _fetched(self, limit: int, timeout_s: float) -> Sequence[Record]:
        """Return what the client has or gets in time, and move the positions."""
        with self._connection.talking():
            fetched = self._connected().poll(timeout_ms=milliseconds(timeout_s), max_records=limit)
        records = [
            Record(self._topic, place.partition, record.offset, record.value or b"", record.timestamp)
            for place, batch in fetched.items()
            for record in batch
        ]
        for place, batch in fetched.items():
            self._positions[place.partition] = batch[-1].offset + 1
        return records

    def first_positions(self, partitions: Sequence[int]) -> Mapping[int, int]:
        """Return, for each partition, the offset of the oldest record that the broker still holds.

        Raises:
            Unavailable: When the broker cannot be reached.
        """
        return self._offsets("beginning_offsets", partitions)

    def close(self) -> None:
        """Release the connection."""
        consumer, self._consumer = self._consumer, None
        self._positions = {}
        if consumer is not None:
            consumer.close(autocommit=False, timeout_ms=1000)

    def _check(self, positions: Mapping[int, int]) -> None:
        first = self._offsets("beginning_offsets", positions)
        end = self._ends(positions)
        for partition, offset in positions.items():
            if not first[partition] <= offset <= end[partition]:
                raise PositionLost(
                    f"partition {partition} of topic {self._topic} holds {first[partition]} up to"
                    f" {end[partition]}, the reader was at {offset}",
                    hint=LOST_HINT,
                )

    def _ends(self, partitions: Iterable[int]) -> dict[int, int]:
        listed = self._offsets("end_offsets", partitions)
        return self._probed_ends(listed) if listed and self._connection.lists_ends_wrongly() else listed

    def _probed_ends(self, listed: Mapping[int, int]) -> dict[int, int]:
        """Return the ends that fetches from the listed ones report."""
        places = {self._at(partition): end for partition, end in listed.items()}
        deadline = time.monotonic() + self._connection.timeouts.request_s
        probe = self._open()
        try:
            with self._connection.talking():
                probe.assign(list(places))
                for place, end in places.items():
                    probe.seek(place, end)
                while any(probe.highwater(place) is None for place in places):
                    probe.poll(timeout_ms=_IDLE_FETCH_MS)
                    if time.monotonic() > deadline:
                        break
                return {
                    place.partition: max(end, probe.highwater(place) or 0) for place, end in places.items()
                }
        finally:
            probe.close(autocommit=False, timeout_ms=1000)

    def _offsets(self, which: str, partitions: Iterable[int]) -> dict[int, int]:
        consumer = self._connected()
        wanted = [self._at(partition) for partition in partitions]
        if not wanted:
            return {}
        timeout_ms = milliseconds(self._connection.timeouts.request_s)
        with self._connection.talking():
            found = getattr(consumer, which)(wanted, timeout_ms=timeout_ms)
        return {place.partition: offset for place, offset in found.items()}

    def _connected(self) -> Any:  # noqa: ANN401 - untyped client
        if self._consumer is None:
            self._consumer = self._open()
        return self._consumer

    def _open(self, **group: object) -> Any:  # noqa: ANN401
        return self._connection.open(
            KafkaConsumer,
            **{"group_id": None, **group},
            enable_auto_commit=False,
            auto_offset_reset="none",
            fetch_max_wait_ms=_IDLE_FETCH_MS,
            fetch_max_bytes=4 * _FETCH_BYTES,
            max_partition_fetch_bytes=_FETCH_BYTES,
            receive_message_max_bytes=_MAX_RESPONSE_BYTES,
            allow_auto_create_topics=False,
            metrics_enabled=False,
        )

    def _at(self, partition: int) -> Any:  # noqa: ANN401 - the client has no types
        return TopicPartition(self._topic, partition)


class KafkaSubscriber(KafkaReader):
    """Reads partitions that it is told of, without a consumer group."""

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
        with self._connection.talking():
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
        records = self._fetched(limit, timeout_s)
        if not records:
            self._check(self._positions)
        return records

    def end_positions(self) -> Mapping[int, int]:
        """Return, for each assigned partition, the offset that the next published record will get.

        Raises:
            Unavailable: When the broker cannot be reached.
        """
        return self._ends(self._positions)

    def _require(self, positions: Mapping[int, int]) -> None:
        """Make sure that the partitions exist; the client would wait for a missing one until it times out."""
        try:
            existing = self._connection.partitions(self._topic)
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
