"""Sharing a topic among workers: a consumer group of Kafka says who reads which partition, and nothing else."""

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from kafka import ConsumerRebalanceListener, errors
from kafka.coordinator.assignors.range import RangePartitionAssignor

from gpuledger.kernel.errors import Refused
from gpuledger.streams.kafka.connection import Connection, milliseconds
from gpuledger.streams.kafka.subscriber import KafkaReader
from gpuledger.streams.protocol import Holder, Record
from gpuledger.streams.topics import Topic

_NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")

_NO_SUCH_GROUP = "Dead"

_PAUSE_S = 0.2

_NEWS_MS = 30_000
"""How often members look whether the topic has other partitions than were shared out; then they share anew."""

_ROUND_S = 5.0
"""How long a member waits at a time for the others, which first book what they have read."""

_SIGNS_OF_LIFE = 5
"""How often within a session a member says that it lives."""


class KafkaGroup:
    """A consumer group that reads one topic.

    Args:
        connection: The cluster.
        topic: The topic.
        name: The group's name on the broker.
    """

    def __init__(self, connection: Connection, topic: Topic, name: str) -> None:
        self._connection, self._topic, self._name = connection, topic, name

    def members(self) -> int:
        """Return how many workers the broker takes for alive.

        Raises:
            Unavailable: When the broker cannot be reached.
        """
        deadline = time.monotonic() + self._connection.timeouts.request_s
        with self._connection.admin() as admin:
            while (found := self._count(admin)) is None:
                if time.monotonic() > deadline:
                    raise errors.CoordinatorNotAvailableError(f"nobody answers for the group {self._name}")
                time.sleep(_PAUSE_S)
        return found

    def _count(self, admin: Any) -> int | None:  # noqa: ANN401 - untyped client
        """Return how many members the broker knows; None while it does not know whether it knows them."""
        try:
            group = admin.describe_groups([self._name])[self._name]
        except errors.CoordinatorNotAvailableError:
            return None  # also when no group was ever asked for, until the broker has made place for groups
        is_known = group["error"] is None or group["group_state"] == _NO_SUCH_GROUP
        return len(group["members"]) if is_known else None

    def join(self, holder: Holder, name: str | None = None) -> "KafkaMember":
        """Become a member; nothing connects before the first poll.

        Raises:
            Refused: When the name is none that a broker takes.
        """
        if name is not None and not _NAME.fullmatch(name):
            raise Refused(
                f"{name!r} cannot be the name of a worker",
                hint="up to 249 letters of ASCII, digits, dots, hyphens and underscores",
            )
        return KafkaMember(self._connection, self._topic, self._name, holder, name)


class KafkaMember(KafkaReader):
    """Reads the partitions that its group gives to it, from the positions that its holder keeps.

    When members come and go, each lets go of all its partitions and is given its share anew. (The client can move
    single ones, but reads none of them meanwhile either, and needs two rounds for it.)
    """

    def __init__(
        self, connection: Connection, topic: Topic, group: str, holder: Holder, name: str | None
    ) -> None:
        super().__init__(connection, topic)
        self._group, self._holder, self._name = group, holder, name
        self._unchecked: Mapping[int, int] = {}
        self._is_settled = False
        """Whether the newest round of the group is over."""

    def poll(self, limit: int, timeout_s: float) -> Sequence[Record]:
        """Return up to ``limit`` next records; empty after the timeout, or while members come and go.

        Raises:
            PositionLost: When the broker does not hold a position that the holder keeps.
            Fenced: When another worker of the same name joined.
            GpuledgerError: What the holder raised.
            Unavailable: When the broker cannot be reached.
        """
        records = self._fetched(limit, timeout_s)
        if not records and not self._is_settled:
            # A round that is over between two polls goes unnoticed by the client: it would begin another.
            records = self._fetched(limit, _ROUND_S)
        # What was just taken over is checked before anything of it is booked.
        self._check(self._unchecked if records else self._positions)
        self._unchecked = {}
        if not records and not self._positions:
            self._ends([0])  # one who has nothing to read must notice too that the broker is down
        return records

    def end_positions(self) -> Mapping[int, int]:
        """Return, for each partition of the topic, the offset that the next published record will get.

        Raises:
            Unavailable: When the broker cannot be reached.
        """
        with self._connection.talking():
            partitions = self._connected().partitions_for_topic(self._topic)
        return self._ends(sorted(partitions or ()))

    def taken(self, partitions: Sequence[int]) -> None:
        """Read these from now on; called by the client within ``poll``."""
        positions = self._holder.take(partitions)
        for partition, offset in positions.items():
            self._consumer.seek(self._at(partition), offset)
        self._positions |= positions
        self._unchecked = {**self._unchecked, **positions}
        self._is_settled = True

    def released(self, partitions: Sequence[int]) -> None:
        """Read these no more; called by the client within ``poll`` and ``close``."""
        for partition in partitions:
            self._positions.pop(partition, None)
        self._unchecked = {p: at for p, at in self._unchecked.items() if p in self._positions}
        self._is_settled = False
        self._holder.release(partitions)

    def _connected(self) -> Any:  # noqa: ANN401 - untyped client
        if self._consumer is None:
            self._connection.partitions(self._topic)  # a topic that is missing would be waited for
            session_ms = milliseconds(self._connection.timeouts.session_s)
            self._consumer = self._open(
                group_id=self._group,
                group_instance_id=self._name,
                session_timeout_ms=session_ms,
                heartbeat_interval_ms=session_ms // _SIGNS_OF_LIFE,
                partition_assignment_strategy=[RangePartitionAssignor],
                metadata_max_age_ms=_NEWS_MS,
            )
            with self._connection.talking():
                self._consumer.subscribe([self._topic], listener=_Listener(self))
                self._consumer.partitions_for_topic(self._topic)  # who shares them out must know them before
        return self._consumer


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """Tells a member what its client says."""

    def __init__(self, member: KafkaMember) -> None:
        self._member = member

    def on_partitions_assigned(self, assigned: Any) -> None:  # noqa: ANN401
        self._member.taken(_numbers(assigned))

    def on_partitions_revoked(self, revoked: Any) -> None:  # noqa: ANN401
        self._member.released(_numbers(revoked))

    def on_partitions_lost(self, lost: Any) -> None:  # noqa: ANN401
        self._member.released(_numbers(lost))


def _numbers(places: Any) -> list[int]:  # noqa: ANN401
    return sorted(place.partition for place in places)
