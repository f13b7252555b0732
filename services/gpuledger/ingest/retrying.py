"""Dead letters, read again: what is understood now is booked in the transaction that resolves it.

Run twice, or killed in between, nothing more changes: a letter that was resolved no longer waits, and an event that
was booked is known by its identity.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from gpuledger.database.engine import Writer, reading
from gpuledger.events.acceptance import understood
from gpuledger.events.envelope import ORG_BOOK, Event, book_of
from gpuledger.events.telemetry import Sampled
from gpuledger.ingest import dead_letters
from gpuledger.ingest.dead_letters import IMPORT_STREAM, DeadLetter, Entry, LettersQuery, Stored
from gpuledger.ingest.intake import Intake
from gpuledger.ingest.known_runs import LedgerRuns
from gpuledger.kernel.errors import Conflict, Refused
from gpuledger.sources.protocol import KnownRuns
from gpuledger.sources.registry import source

BATCH_LETTERS = 500
BATCH_BYTES = 16 << 20

OnFailure = Callable[[Stored, Refused], None]
"""Told of every letter that still cannot be read, or booked."""


@dataclass(slots=True)
class Retried:
    """What a retry did.

    Args:
        resolved: Letters that were understood and booked.
        failed: Letters that still cannot be read; they wait on.
        clusters: Clusters that something was booked for.
    """

    resolved: int = 0
    failed: int = 0
    clusters: set[str] = field(default_factory=set)


def read_again(letter: DeadLetter, known: KnownRuns | None = None) -> list[Event]:
    """Read a dead letter with the code of today.

    Args:
        letter: The dead letter.
        known: The runs that are booked already; None when there is no ledger.

    Raises:
        Refused: When it still cannot be read.
    """
    if letter.stream.startswith(IMPORT_STREAM):
        reader = source(str(letter.context.get("source")))
        return [event for event, _ in reader.retry(letter.raw, {**letter.context, "known": known}).events]
    return [understood(letter.raw)]


def retry(intake: Intake, entries: Iterable[Entry], on_failure: OnFailure) -> Retried:
    """Read letters again that wait, and book those that are understood; the others wait on.

    Raises:
        Unavailable: When the database cannot be reached; what was resolved until then stays so.
    """
    done = Retried()
    for ids in _batches(entries):
        with reading(intake.engine) as reader:
            stored = dead_letters.waiting(reader, LettersQuery(ids=ids), limit=len(ids))
        _read_and_book(intake, stored, on_failure, done)
    return done


def retry_mended(intake: Intake, id_: int, raw: bytes, on_failure: OnFailure) -> Retried:
    """Book other bytes in place of a letter's own, which a person has mended; its own stay as they came.

    Raises:
        NotFound: When there is no such letter.
        Refused: When it no longer waits.
    """
    with reading(intake.engine) as reader:
        entry = dead_letters.get_entry(reader, id_)
        stored = dead_letters.waiting(reader, LettersQuery(ids=[id_]))
    if not stored:
        raise Refused(
            f"dead letter {id_} was {entry.state} at {entry.ended_at}", hint=f"gpuledger dlq show {id_}"
        )
    letter = stored[0].letter
    # Whoever mends a record that was cut off has the whole of it.
    whole = {key: value for key, value in letter.context.items() if key != "partial"}
    done = Retried()
    _read_and_book(
        intake, [replace(stored[0], letter=replace(letter, raw=raw, context=whole))], on_failure, done
    )
    return done


def _batches(entries: Iterable[Entry]) -> Iterator[list[int]]:
    """Yield ids of letters that are held in memory together."""
    ids: list[int] = []
    size = 0
    for entry in entries:
        if ids and (len(ids) == BATCH_LETTERS or size + entry.bytes > BATCH_BYTES):
            yield ids
            ids, size = [], 0
        ids.append(entry.id)
        size += entry.bytes
    if ids:
        yield ids


def _read_and_book(intake: Intake, letters: Sequence[Stored], on_failure: OnFailure, done: Retried) -> None:
    # Letters whose events go into one transaction are booked together.
    known = LedgerRuns(intake.engine)
    groups: dict[frozenset[tuple[str, bool]], list[tuple[Stored, list[Event]]]] = {}
    for stored in letters:
        try:
            events = read_again(stored.letter, known)
        except Refused as error:
            done.failed += 1
            on_failure(stored, error)
            continue
        where = frozenset((book_of(event.data), isinstance(event.data, Sampled)) for event in events)
        groups.setdefault(where, []).append((stored, events))
    for where, group in groups.items():
        # What goes into several transactions is booked alone, and resolved in the last of them.
        for part in [group] if len(where) <= 1 else [[one] for one in group]:
            _book(intake, part, on_failure, done)


def _book(
    intake: Intake, group: Sequence[tuple[Stored, list[Event]]], on_failure: OnFailure, done: Retried
) -> None:
    ids = [stored.id for stored, _ in group]

    def guard(writer: Writer, *, last: bool) -> None:
        if last:
            dead_letters.resolve(writer, ids, intake.clock.now())

    try:
        intake.take([event for _, events in group for event in events], guard)
    except (Conflict, Refused) as error:
        # One of them was resolved or discarded meanwhile, or no book can be settled with it: the others go on.
        if len(group) > 1:
            for one in group:
                _book(intake, [one], on_failure, done)
        elif isinstance(error, Refused):
            done.failed += 1
            on_failure(group[0][0], error)
        return
    done.resolved += len(group)
    done.clusters |= {book_of(event.data) for _, events in group for event in events} - {ORG_BOOK}
