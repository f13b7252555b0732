"""Append a batch of events to one book: the one way into the journal.

Under the book's row lock: drop what is known already, take over the organisation's policy data, and seal what is new
(``batch``) - all in the caller's transaction, which touches this book only (law 2).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from psycopg import DataError

from gpuledger.database.engine import Reader, Writer
from gpuledger.events import budget
from gpuledger.events.envelope import ORG_BOOK, Event, make
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock
from gpuledger.kernel.errors import TooLarge
from gpuledger.ledger import org_orders, queries, store
from gpuledger.ledger.applied import Applied
from gpuledger.ledger.batch import POLICY_SOURCE, Batch, Left, New
from gpuledger.ledger.identity import pseudonymous, user_keys
from gpuledger.ledger.mapping import MAPPING
from gpuledger.ledger.rates import RATE_CARD
from gpuledger.ledger.store import BookHead


@dataclass(slots=True)
class Appended:
    """What a batch changed.

    Args:
        accepted: Ids (source, id) of events that were new.
        repeated: How many events the book knew already, byte for byte.
        head: The book's head after the batch.
        accounts: Who pays for what the batch told of, where a mapping says so; they may not exist yet.
    """

    accepted: list[tuple[str, str]] = field(default_factory=list)
    repeated: int = 0
    head: BookHead | None = None
    accounts: set[str] = field(default_factory=set)


def append(
    writer: Writer, book: str, events: Sequence[Event], *, clock: Clock, calendar: Calendar
) -> Appended:
    """Append events to a book in the order given; events known already change nothing.

    A cluster's book first takes over the policy data of the organisation that it does not have yet.

    Raises:
        BadRecord: When an order cannot be taken as ``~org`` stands; nothing of the batch was written.
        Corrupt: When the database refuses what the laws promise.
        TooLarge: When an amount that follows, or a sum that it becomes a part of, fits no column.
    """
    try:
        return _append(writer, book, events, clock, calendar)
    except (DataError, OverflowError) as error:
        raise TooLarge(
            f"an amount of book {book!r} is larger than the ledger can hold: {error}",
            hint="grant less, or set a smaller weight from the same moment: gpuledger policy-data list",
        ) from error


def _append(writer: Writer, book: str, events: Sequence[Event], clock: Clock, calendar: Calendar) -> Appended:
    result = Appended()
    head = store.lock_book(writer, book)
    keys = user_keys(writer, events)
    fresh = _without_repeats(writer, book, [(event, *pseudonymous(event, keys)) for event in events], result)
    if book == ORG_BOOK:
        org_orders.check(writer, [(event.at_s, fact) for event, fact, _ in fresh], calendar)
    elif not head.last_seq:  # the zone may have been set while this waited to begin the book
        calendar = queries.calendar(writer, calendar)
    applied = queries.policies_applied(writer, book).get(book, [])
    taken_over = [] if book == ORG_BOOK else _taken_over(writer, book, applied)
    # Each version restates in batches of its own, so that what it restated need not be held in memory.
    pending: list[Sequence[New] | Left] = [
        *([version] for version in taken_over),
        fresh,
    ]
    while pending:
        told = pending.pop(0)
        if told:
            batch = Batch(writer, book, head, calendar, applied)
            now = clock.now()
            head = batch.restate(told, now) if isinstance(told, Left) else batch.run(told, now)
            applied, result.accounts = batch.applied, result.accounts | batch.accounts
            if back := batch.overtaken():
                head = Batch(writer, book, head, calendar, applied).carry(back, clock.now())
            if due := batch.settlement(back):
                head = Batch(writer, book, head, calendar, applied).carry(due, clock.now())
            if batch.left:
                pending.insert(0, batch.left)
    result.head = head
    return result


def _taken_over(writer: Writer, book: str, applied: Sequence[Applied]) -> list[New]:
    """Return the rate cards and mappings that ``~org`` has and the book has not, as facts of the book."""
    found = []
    for seq, at_s, changed in missing(writer, applied):
        fact = budget.PolicyApplied(
            cluster=book,
            org_seq=seq,
            policy=changed.policy,
            weights=changed.weights,
            rules=changed.rules,
            supersedes=changed.supersedes,
        )
        event, _ = make(id=f"{changed.policy}/{seq}", source=POLICY_SOURCE, at_s=at_s, data=fact)
        found.append((event, event.data, event.digest))
    return found


def missing(
    reader: Reader | Writer, applied: Sequence[Applied]
) -> list[tuple[int, int, budget.PolicyChanged]]:
    """Return the rate cards and mappings that ``~org`` has and a book has not taken over; see ``policy_versions``."""
    newest = max((version.fact.org_seq for version in applied), default=0)
    return queries.policy_versions(reader, RATE_CARD, MAPPING, after_seq=newest)


def _without_repeats(writer: Writer, book: str, events: Sequence[New], result: Appended) -> list[New]:
    identities = [(event.id, event.source, digest) for event, _, digest in events]
    seen = store.known_identities(writer, book, [id_ for id_, _, _ in identities])
    fresh = list(events)
    if seen or len(set(identities)) < len(identities):  # few batches repeat anything
        fresh = []
        for identity, new in zip(identities, events, strict=True):
            if identity not in seen:
                seen.add(identity)
                fresh.append(new)
    result.repeated += len(events) - len(fresh)
    result.accepted += [(event.source, event.id) for event, _, _ in fresh]
    return fresh
