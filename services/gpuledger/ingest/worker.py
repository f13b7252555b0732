"""The ingest worker: poll a topic, read events, book them with the positions, in one transaction each.

Bad values go to the dead letters with their place and the stream goes on. Positions live in
PostgreSQL: a worker that was killed starts where the last commit stands. Workers that share a topic
get their partitions from the broker's group, and the right to book them by raising their epochs.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from gpuledger.database.engine import Writer, reading
from gpuledger.database.meanwhile import Work
from gpuledger.events.acceptance import understood
from gpuledger.events.envelope import Event
from gpuledger.ingest import continuity, offsets
from gpuledger.ingest.batches import READ_AT_ONCE, Batch, Understand, Understood, batches
from gpuledger.ingest.dead_letters import DeadLetter, put
from gpuledger.ingest.holding import Holding, group_name
from gpuledger.ingest.intake import Intake
from gpuledger.ingest.relay import relay
from gpuledger.kernel.clock import seconds
from gpuledger.kernel.errors import BadRecord, Fenced, Refused, TooLarge
from gpuledger.ledger import queries
from gpuledger.ledger.attempts import booked
from gpuledger.ledger.sealing import HOUR_S
from gpuledger.streams.protocol import Broker, Feed, Group, Record
from gpuledger.streams.topics import SCHEDULER_EVENTS, TOPICS, Topic

CONSUMER = "ledger"

BATCH_RECORDS = 4000

BATCHES_AT_ONCE = 4
"""How many batches a poll takes where so many wait: of the second on each is understood while the one before is booked.
More of them would put off a rebalance, and hold more memory."""

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
    """Books one topic: with others that share its partitions, where the broker knows groups, else alone.

    Args:
        intake: Where events are booked.
        broker: Where they come from.
        topic: Which topic.
        ticks: Whether it moves the clock of the books each hour; not while history is read back in.
        consumer: Whose positions it moves.
        understand: Reads a batch of values, once that before it is booked: it may ask the ledger. Events are read
            otherwise.
        notify: Told what an operator may want to know: when partitions come and go.
    """

    def __init__(
        self,
        intake: Intake,
        broker: Broker,
        topic: Topic,
        *,
        ticks: bool = True,
        consumer: str = CONSUMER,
        understand: Understand | None = None,
        notify: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.intake, self.broker, self.topic = intake, broker, topic
        self._consumer, self._understand = consumer, understand or read
        self._read_at_once = READ_AT_ONCE if understand is None else None
        self._notify = notify
        self._ticks = ticks and topic == SCHEDULER_EVENTS
        self.progress = Progress()
        self._held = Holding(intake.engine, consumer, topic, notify)
        self._looked_s = -LOOK_S
        self._booked: set[str] = set()
        self._ticked_s = 0
        self._due: tuple[int, Mapping[int, int]] | None = None
        """The hour to tick, and where the topic ended when it was over."""
        self._untold = False
        """Whether dead letters were kept that their topic has not been told of."""

    def run(
        self,
        on_batch: Callable[[Progress], None],
        *,
        once: bool = False,
        from_start: bool = False,
        name: str | None = None,
    ) -> Progress:
        """Read for ever, or up to where the topic ends now when it is to be read ``once``.

        Args:
            on_batch: Told after each batch.
            once: Whether to stop where the topic ends now. Workers that share the topic are left to read it.
            from_start: Whether to read all that the topic still holds, whatever was read of it before.
            name: By which it is known when it is started again, and has its partitions back at once.

        Raises:
            Fenced: When another worker took over from one that reads alone, or that has a name.
            PositionLost: When the stream no longer holds the stored position.
            Unavailable: When the broker or database cannot be reached.
        """
        if self.topic in TOPICS:
            self.broker.ensure_topics([self.topic])
        self._begin(from_start=from_start)
        with reading(self.intake.engine) as reader:
            group = self.broker.group(self.topic, group_name(reader, self._consumer, self.topic))
        if once:
            self._drain(group, on_batch)
        elif group is None:
            self._read_alone(on_batch)
        else:
            self._share(group, name, on_batch)
        return self.progress

    def _begin(self, *, from_start: bool) -> None:
        """Move positions to the oldest records that the stream holds, where that is asked for or only right.

        All others are checked: a topic that was created anew is not read on.

        Events that were booked are known by their identity. Others let their topics expire: what was gone before
        anything was read of it was never ours.
        """
        with reading(self.intake.engine) as reader:
            stood = offsets.stood(reader, self._consumer, self.topic)
        existing = self.broker.partitions(self.topic)
        if not from_start:
            continuity.check(self.broker, self.topic, {p: at for p, at in stood.items() if p in existing})
        stored = {partition: at.position for partition, at in stood.items()}
        wanted = [
            partition
            for partition in existing
            if from_start or (self.topic not in TOPICS and stored.get(partition, 0) == 0)
        ]
        if not wanted:
            return
        with closing(self.broker.subscriber(self.topic)) as subscriber:
            first = subscriber.first_positions(wanted)
        moved = [partition for partition, at in first.items() if at != stored.get(partition, 0)]

        def move(writer: Writer) -> None:
            for claim in offsets.claim(writer, self._consumer, self.topic, moved):
                offsets.advance(writer, claim, first[claim.partition])

        booked(self.intake.engine, None, move)
        if from_start:
            self.progress.gone = sum(max(first[p] - stored.get(p, 0), 0) for p in moved)

    def _share(self, group: Group, name: str | None, on_batch: Callable[[Progress], None]) -> None:
        """Read what the group gives to this worker. One that was asleep has lost it, and joins again."""
        while True:
            feed = group.join(self._held, name)
            try:
                self._loop(feed, None, on_batch)
            except Fenced as fenced:
                if name is not None:
                    raise  # two of one name would push each other out for ever
                self._notify(f"{fenced.message}: nothing was written, and this one joins again")
            finally:
                feed.close()
                self._held.release(list(self._held.claims))

    def _drain(self, group: Group | None, on_batch: Callable[[Progress], None]) -> None:
        """See to it that all is booked that is on the topic now: by the workers that share it, or else alone."""
        ends = self._ends()
        while group is not None and (others := group.members()):
            if self._held.passed(ends):
                return
            self._notify(f"{self.topic}: workers that share it read it: {others}")
            time.sleep(LOOK_S)
        self._read_alone(on_batch, ends)

    def _ends(self) -> Mapping[int, int]:
        with closing(self.broker.subscriber(self.topic)) as subscriber:
            subscriber.assign(subscriber.first_positions(self.broker.partitions(self.topic)))
            return dict(subscriber.end_positions())

    def _read_alone(
        self, on_batch: Callable[[Progress], None], ends: Mapping[int, int] | None = None
    ) -> None:
        """Take every partition over, for ever or until all is booked up to the ends."""
        with closing(self.broker.subscriber(self.topic)) as subscriber:
            subscriber.assign(self._held.take(self.broker.partitions(self.topic)))
            if ends is not None:
                self.progress.waiting = sum(ends.values()) - sum(self._held.positions.values())
            self._loop(subscriber, ends, on_batch)
            self._tell()

    def _loop(self, feed: Feed, ends: Mapping[int, int] | None, on_batch: Callable[[Progress], None]) -> None:
        with reading(self.intake.engine) as reader:
            # A worker that was killed between its last batch and this may have left periods to open.
            clusters = set(queries.clusters(reader))
        while ends is None or not self._held.passed(ends):
            records = feed.poll(BATCHES_AT_ONCE * BATCH_RECORDS, POLL_S)
            self._look(feed)
            polled = batches(records, BATCH_RECORDS, self._understand, self._read_at_once)
            while polled and (ends is None or not self._held.passed(ends)):
                batch = polled.popleft()
                self._booked |= (touched := self._book(batch, polled[0].work if polled else None))
                clusters |= touched
                on_batch(self.progress)
            if not self._held.claims:
                continue  # the others have it all
            if ends is None and self._ticks:
                clusters |= self._tick(feed)
            if not records and clusters and self._held.passed(feed.end_positions()):
                # The stream is drained: every account of the backlog is known, so periods may open.
                self.intake.open_periods(sorted(clusters), self._held.check)
                clusters.clear()
        self.intake.open_periods(sorted(clusters), self._held.check)

    def _tick(self, feed: Feed) -> set[str]:
        """Tick each hour once it is over and all that was published until then is booked; return what moved.

        An end that is still to be read is not lost, so the topic that ends come on is the one whose workers tick:
        each the books that it began, and the one that holds the first partition all those that ticked before.
        """
        hour_s = seconds(self.intake.clock.now()) // HOUR_S * HOUR_S
        if self._due is None and hour_s > self._ticked_s:
            self._due = hour_s, dict(feed.end_positions())
        if self._due is None or not self._held.passed(self._due[1]):
            return set()
        self._ticked_s, self._due = self._due[0], None
        return self.intake.tick(
            self._booked, self._ticked_s, self._held.check, running=0 in self._held.claims
        )

    def _look(self, feed: Feed) -> None:
        """Ask now and then where the stream ends, and keep it for whoever watches the backlog."""
        if time.monotonic() - self._looked_s < LOOK_S:
            return
        self._looked_s = time.monotonic()
        self._tell()

        def note(writer: Writer) -> None:
            self._held.check(writer)
            for partition, end in feed.end_positions().items():
                if (claim := self._held.claims.get(partition)) is not None:
                    offsets.note_end(writer, claim, end, self.intake.clock.now())

        booked(self.intake.engine, None, note)

    def _tell(self) -> None:
        """Have the topic of dead letters told of those that were kept."""
        if self._untold:
            relay(self.intake.engine, self.broker, self.intake.clock)
            self._untold = False

    def _book(self, batch: Batch, meanwhile: Work | None) -> set[str]:
        """Book records; one that the ledger cannot hold, or take as it stands, is put aside, and the others go on."""
        events, letters = batch.understood()
        try:
            return self._write(batch.records, events, letters, meanwhile)
        except (TooLarge, BadRecord) as error:
            if len(batch.records) == 1:
                code = error.code if isinstance(error, BadRecord) else "amount-too-large"
                letter = _letter(batch.records[0], code, error)
                return self._write(batch.records, [], [*letters, letter], meanwhile)
        # It is among these: the half without it is booked as it is.
        first, second = batch.halves()
        return self._book(first, meanwhile) | self._book(second, meanwhile)

    def _write(
        self,
        records: Sequence[Record],
        events: Sequence[Event],
        letters: Sequence[DeadLetter],
        meanwhile: Work | None,
    ) -> set[str]:
        newest = records[-1]
        partition = newest.partition
        claim = self._held.claims[partition]
        published_at = continuity.published(newest)

        put_aside = 0

        def guard(writer: Writer, *, last: bool) -> None:
            nonlocal put_aside
            offsets.advance(writer, claim, newest.position + 1 if last else None, published_at)
            if last:
                put_aside = put(writer, letters, self.intake.clock.now())

        taken = self.intake.take(events, guard, meanwhile)
        self._held.positions[partition] = newest.position + 1
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
            letters.append(_letter(record, error.code, error))
    return events, letters


def _letter(record: Record, code: str, error: Refused) -> DeadLetter:
    return DeadLetter(
        stream=record.topic,
        partition=record.partition,
        position=record.position,
        place=f"{record.topic}[{record.partition}]@{record.position}",
        code=code,
        reason=error.message,
        hint=error.hint,
        raw=record.value,
    )
