"""The ingest worker: poll a topic, read events, book them with the positions, in one transaction each.

Bad values go to the dead letters with their place and the stream goes on. Positions live in
PostgreSQL: a worker that was killed starts where the last commit stands.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gpuledger.database.engine import Writer, reading, writing
from gpuledger.events.acceptance import understood
from gpuledger.events.envelope import Event
from gpuledger.ingest import offsets
from gpuledger.ingest.dead_letters import DeadLetter, put
from gpuledger.ingest.intake import Intake
from gpuledger.ingest.offsets import Claim
from gpuledger.ingest.relay import relay
from gpuledger.kernel.clock import instant, seconds
from gpuledger.kernel.errors import BadRecord
from gpuledger.ledger import queries
from gpuledger.ledger.sealing import HOUR_S
from gpuledger.streams.protocol import Broker, Record, Subscriber
from gpuledger.streams.topics import SCHEDULER_EVENTS, TOPICS, Topic

CONSUMER = "ledger"

Understood = tuple[list[Event], list[DeadLetter]]
"""What could be read of a batch, and what could not."""

BATCH_RECORDS = 3000
POLL_S = 1.0

LOOK_S = 5.0
"""How often a worker asks where its stream ends."""


@dataclass(slots=True)
class Progress:
    """What a worker has done since it started, and how many records waited when it did.

    Args:
        gone: Records that nobody had read and the stream no longer holds, when it was started from its beginning.
    """

    waiting: int = 0
    records: int = 0
    accepted: int = 0
    repeated: int = 0
    dead_lettered: int = 0
    gone: int = 0


class Worker:
    """Books one topic. Starting a second worker for the same topic fences the first.

    Args:
        intake: Where events are booked.
        broker: Where they come from.
        topic: Which topic.
        ticks: Whether it moves the clock of the books each hour; not while history is read back in.
        consumer: Whose positions it moves.
        understand: Reads a batch of values; it raises nothing for what cannot be read.
    """

    def __init__(
        self,
        intake: Intake,
        broker: Broker,
        topic: Topic,
        *,
        ticks: bool = True,
        consumer: str = CONSUMER,
        understand: Callable[[Sequence[Record]], Understood] | None = None,
    ) -> None:
        self.intake, self.broker, self.topic = intake, broker, topic
        self._consumer, self._understand = consumer, understand or read
        self._ticks = ticks and topic == SCHEDULER_EVENTS
        self.progress = Progress()
        self._claims: dict[int, Claim] = {}
        self._looked_s = -LOOK_S
        self._booked: set[str] = set()
        self._ticked_s = 0
        self._due: tuple[int, Mapping[int, int]] | None = None
        """The hour to tick, and where the topic ended when it was over."""
        self._untold = False
        """Whether dead letters were kept that their topic has not been told of."""

    def run(
        self, on_batch: Callable[[Progress], None], *, once: bool = False, from_start: bool = False
    ) -> Progress:
        """Read for ever, or up to where the topic ends now when it is to be read ``once``.

        Args:
            on_batch: Told after each batch.
            once: Whether to stop where the topic ends now.
            from_start: Whether to read all that the topic still holds, whatever was read of it before.

        Raises:
            Fenced: When another worker took over.
            PositionLost: When the stream no longer holds the stored position.
            Unavailable: When the broker or database cannot be reached.
        """
        is_own = self.topic in TOPICS
        if is_own:
            self.broker.ensure_topics([self.topic])
        with writing(self.intake.engine) as writer:
            claims = offsets.claim(writer, self._consumer, self.topic, self.broker.partitions(self.topic))
        self._claims = {claim.partition: claim for claim in claims}
        positions = {claim.partition: claim.position for claim in claims}
        subscriber = self.broker.subscriber(self.topic)
        try:
            if from_start:
                positions = self._rewound(subscriber, positions)
            elif not is_own:
                # Others let theirs expire; what was gone before anything was read of it was never ours.
                unread = [partition for partition, position in positions.items() if position == 0]
                positions |= subscriber.first_positions(unread)
            subscriber.assign(positions)
            ends = dict(subscriber.end_positions())
            self.progress.waiting = sum(ends.values()) - sum(positions.values())
            self._loop(subscriber, positions, ends if once else None, on_batch)
            self._tell()
        finally:
            subscriber.close()
        return self.progress

    def _rewound(self, subscriber: Subscriber, positions: Mapping[int, int]) -> dict[int, int]:
        """Stand at the oldest records that the stream holds; events that were booked are known by their identity."""
        first = dict(subscriber.first_positions(list(positions)))
        self.progress.gone = sum(max(first[partition] - at, 0) for partition, at in positions.items())
        with writing(self.intake.engine) as writer:
            for partition, claim in self._claims.items():
                offsets.advance(writer, claim, first[partition])
        return first

    def _loop(
        self,
        subscriber: Subscriber,
        positions: dict[int, int],
        ends: Mapping[int, int] | None,
        on_batch: Callable[[Progress], None],
    ) -> None:
        with reading(self.intake.engine) as reader:
            # A worker that was killed between its last batch and this may have left periods to open.
            clusters = set(queries.clusters(reader))
        while ends is None or any(positions[partition] < end for partition, end in ends.items()):
            records = subscriber.poll(BATCH_RECORDS, POLL_S)
            self._look(subscriber)
            for partition in sorted({record.partition for record in records}):
                own = [record for record in records if record.partition == partition]
                self._booked |= (touched := self._book(partition, own))
                clusters |= touched
                positions[partition] = own[-1].position + 1
                on_batch(self.progress)
            if ends is None and self._ticks:
                clusters |= self._tick(subscriber, positions)
            if not records and clusters:
                # The stream is drained: every account of the backlog is known, so periods may open.
                self.intake.open_periods(sorted(clusters), self._still_mine)
                clusters.clear()
        self.intake.open_periods(sorted(clusters), self._still_mine)

    def _tick(self, subscriber: Subscriber, positions: Mapping[int, int]) -> set[str]:
        """Tick each hour once it is over and all that was published until then is booked; return what moved.

        An end that is still to be read is not lost, so the topic that ends come on is the one whose worker ticks.
        """
        hour_s = seconds(self.intake.clock.now()) // HOUR_S * HOUR_S
        if self._due is None and hour_s > self._ticked_s:
            self._due = hour_s, dict(subscriber.end_positions())
        if self._due is None or any(positions[partition] < end for partition, end in self._due[1].items()):
            return set()
        self._ticked_s, self._due = self._due[0], None
        return self.intake.tick(self._booked, self._ticked_s, self._still_mine)

    def _look(self, subscriber: Subscriber) -> None:
        """Ask now and then where the stream ends, and keep it for whoever watches the backlog."""
        if time.monotonic() - self._looked_s < LOOK_S:
            return
        self._looked_s = time.monotonic()
        self._tell()
        with writing(self.intake.engine) as writer:
            self._still_mine(writer, last=False)
            for partition, end in subscriber.end_positions().items():
                offsets.note_end(writer, self._claims[partition], end, self.intake.clock.now())

    def _tell(self) -> None:
        """Have the topic of dead letters told of those that were kept."""
        if self._untold:
            relay(self.intake.engine, self.broker, self.intake.clock)
            self._untold = False

    def _still_mine(self, writer: Writer, *, last: bool) -> None:  # noqa: ARG002 - the Guard protocol
        for claim in self._claims.values():
            offsets.advance(writer, claim, None)

    def _book(self, partition: int, records: Sequence[Record]) -> set[str]:
        events, letters = self._understand(records)
        claim, newest = self._claims[partition], records[-1]
        published_at = None if newest.published_ms is None else instant(newest.published_ms // 1000)

        put_aside = 0

        def guard(writer: Writer, *, last: bool) -> None:
            nonlocal put_aside
            offsets.advance(writer, claim, newest.position + 1 if last else None, published_at)
            if last:
                put_aside = put(writer, letters, self.intake.clock.now())

        taken = self.intake.take(events, guard)
        self.progress.dead_lettered += put_aside
        self._untold |= bool(letters)
        self.progress.records += len(records)
        self.progress.accepted += len(taken.accepted)
        self.progress.repeated += taken.repeated
        return {event.data.cluster for event in events if hasattr(event.data, "cluster")}


def read(records: Sequence[Record]) -> Understood:
    """Read values from a stream; what cannot be read becomes a dead letter, never an exception."""
    events: list[Event] = []
    letters: list[DeadLetter] = []
    for record in records:
        try:
            events.append(understood(record.value))
        except BadRecord as error:
            letters.append(
                DeadLetter(
                    stream=record.topic,
                    partition=record.partition,
                    position=record.position,
                    place=f"{record.topic}[{record.partition}]@{record.position}",
                    code=error.code,
                    reason=error.message,
                    hint=error.hint,
                    raw=record.value,
                )
            )
    return events, letters
