"""``gpuledger import``: foreign records -> events -> the ledger, straight or through Kafka.

Both ways book the same events; a record counts as repeated when the book knew all its events. A record whose amounts
the ledger cannot hold, or whose order it cannot take as it stands, becomes a dead letter as one that cannot be read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

from gpuledger.database.engine import Writer, reading
from gpuledger.events.envelope import Event, book_of, key_of
from gpuledger.events.orders import is_order
from gpuledger.events.telemetry import Sampled
from gpuledger.ingest import telemetry
from gpuledger.ingest.dead_letters import IMPORT_STREAM, DeadLetter, put
from gpuledger.ingest.intake import Intake, Taken
from gpuledger.ingest.known_runs import LedgerRuns
from gpuledger.kernel.errors import BadRecord, TooLarge
from gpuledger.ledger.attempts import booked
from gpuledger.ledger.store import known_identities
from gpuledger.sources.protocol import Anomaly, Fault, ImportOptions, Source, Translated
from gpuledger.streams.protocol import Broker, Message
from gpuledger.streams.topics import BUDGET_EVENTS, SCHEDULER_EVENTS, TELEMETRY, Topic

Record = TypeVar("Record")

BATCH_RECORDS = 2000
RAW_BYTES_MAX = 16 * 2**20

EVENT_TOPICS: tuple[Topic, ...] = (BUDGET_EVENTS, SCHEDULER_EVENTS, TELEMETRY)
"""What events come on, in the order in which they are best booked: who pays, what ran, what it used."""

OnProgress = Callable[[int], None]
"""Told how many bytes of the file were read so far."""


@dataclass(slots=True)
class ImportReport:
    """What an import found. Counts are source records, not events."""

    records: int = 0
    accepted: int = 0
    repeated: int = 0
    dead_lettered: int = 0
    anomalies: list[Anomaly] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the report under the published keys."""
        return {
            "records": self.records,
            "accepted": self.accepted,
            "repeated": self.repeated,
            "dead_lettered": self.dead_lettered,
            "anomalies": [{"code": a.code, "line": a.line, "message": a.message} for a in self.anomalies],
            "faults": self.faults,
        }


def topic_of(event: Event) -> Topic:
    """Return the topic that an event belongs on."""
    if isinstance(event.data, Sampled):
        return TELEMETRY
    return BUDGET_EVENTS if is_order(event.data) else SCHEDULER_EVENTS


class Sink(Protocol):
    """Where the events of an import go."""

    intake: Intake
    """The ledger that they reach sooner or later."""

    def take(self, events: Sequence[tuple[Event, bytes]], letters: Sequence[DeadLetter]) -> Taken:
        """Accept a batch; say which events were new."""
        ...


class LedgerSink:
    """Books events straight into the ledger, dead letters in the same transaction."""

    def __init__(self, intake: Intake) -> None:
        self.intake = intake

    def take(self, events: Sequence[tuple[Event, bytes]], letters: Sequence[DeadLetter]) -> Taken:
        """Book a batch."""

        def guard(writer: Writer, *, last: bool) -> None:
            if last and letters:
                put(writer, letters, self.intake.clock.now())

        return self.intake.take([event for event, _ in events], guard if letters else None)


class BrokerSink:
    """Publishes events; says beforehand which of them the ledger knows already."""

    def __init__(self, intake: Intake, broker: Broker) -> None:
        self.intake, self.broker = intake, broker
        broker.ensure_topics(EVENT_TOPICS)
        self.publisher = broker.publisher()

    def take(self, events: Sequence[tuple[Event, bytes]], letters: Sequence[DeadLetter]) -> Taken:
        """Publish a batch and wait until it is stored."""
        taken = Taken(accepted={(e.source, e.id) for e, _ in events} - self._known([e for e, _ in events]))
        taken.repeated = len(events) - len(taken.accepted)
        for event, value in events:
            self.publisher.publish(topic_of(event), [Message(key_of(event.data), value)])
        self.publisher.flush()
        if letters:
            booked(self.intake.engine, None, lambda writer: put(writer, letters, self.intake.clock.now()))
        return taken

    def _known(self, events: Sequence[Event]) -> set[tuple[str, str]]:
        known: set[tuple[str, str]] = set()
        with reading(self.intake.engine) as reader:
            samples = [e for e in events if isinstance(e.data, Sampled)]
            known.update(telemetry.counted(reader, samples))
            others: dict[str, list[str]] = {}
            for event in events:
                if not isinstance(event.data, Sampled):
                    others.setdefault(book_of(event.data), []).append(event.id)
            for book, ids in others.items():
                known.update((source, id_) for id_, source, _ in known_identities(reader, book, ids))
        return known


def run_import(
    source: Source, path: Path, options: ImportOptions, sink: Sink, on_progress: OnProgress
) -> tuple[ImportReport, list[str]]:
    """Read a file or folder to its end; return the report and the clusters it touched.

    Raises:
        Refused: When the file as a whole cannot be what its source says.
        Unavailable: When the database or broker cannot be reached.
    """
    report, clusters = ImportReport(), set[str]()
    if options.known is None:
        options = replace(options, known=LedgerRuns(sink.intake.engine))
    records = iter(source.read(path, options))
    for batch in iter(lambda: list(islice(records, BATCH_RECORDS)), []):
        understood = [item for item in batch if isinstance(item, Translated)]
        faults = [item for item in batch if isinstance(item, Fault)]
        letters = [_letter(source, options, fault) for fault in faults]
        taken, refused = take_records(sink, [(item, item.events) for item in understood], letters)
        put_aside = {id(item): item.as_fault(item.line, error) for item, error in refused if item.as_fault}
        if put_aside:
            sink.take([], [_letter(source, options, fault) for fault in put_aside.values()])
            faults += put_aside.values()
            understood = [item for item in understood if id(item) not in put_aside]
        clusters.update(book_of(event.data) for item in understood for event, _ in item.events)
        report.records += len(batch)
        report.dead_lettered += len(faults)
        for item in understood:
            new = any((event.source, event.id) in taken.accepted for event, _ in item.events)
            report.accepted += new
            report.repeated += not new
        report.anomalies += [anomaly for item in understood for anomaly in item.anomalies]
        report.faults += [_told(fault) for fault in faults]
        on_progress(batch[-1].bytes_read)
    return report, sorted(clusters)


def take_records(
    sink: Sink, records: Sequence[tuple[Record, Sequence[tuple[Event, bytes]]]], letters: Sequence[DeadLetter]
) -> tuple[Taken, list[tuple[Record, BadRecord]]]:
    """Book records; return what was new, and those that the ledger cannot hold or take: none of these is booked.

    Args:
        sink: Where they go.
        records: Each with its events.
        letters: What could not be read, kept beside them.
    """
    try:
        return sink.take([pair for _, events in records for pair in events], letters), []
    except (TooLarge, BadRecord) as error:
        if len(records) <= 1:
            if isinstance(error, TooLarge):
                error = BadRecord(error.message, code="amount-too-large", hint=error.hint)
            return sink.take([], letters), [(record, error) for record, _ in records]
    # It is among these: the half without it is booked as it is.
    middle = len(records) // 2
    taken, refused = take_records(sink, records[:middle], letters)
    further, others = take_records(sink, records[middle:], [])
    return Taken(taken.accepted | further.accepted, taken.repeated + further.repeated), [*refused, *others]


def _letter(source: Source, options: ImportOptions, fault: Fault) -> DeadLetter:
    return DeadLetter(
        stream=f"{IMPORT_STREAM}{source.name}/{options.cluster or source.name}",
        partition=0,
        position=fault.line,
        place=f"{fault.path}:{fault.line}",
        code=fault.code,
        reason=fault.message,
        hint=fault.hint,
        raw=fault.raw[:RAW_BYTES_MAX],
        context={**fault.context, "source": source.name},
    )


def _told(fault: Fault) -> str:
    return f"{fault.message}. {fault.hint}" if fault.hint else fault.message
