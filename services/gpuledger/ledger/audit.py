"""Verify a book from its rows alone: chain, gaps, identities, conservation, balances; and its guards."""

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from gpuledger.database.engine import Reader
from gpuledger.ledger import guards
from gpuledger.ledger.chain import GENESIS, JournalRow, row_hash
from gpuledger.ledger.charges import Posting, Pot
from gpuledger.ledger.copying import driver
from gpuledger.ledger.store import LEGS, BookHead

OnProgress = Callable[[int, int], None]
"""Told now and then how many rows are verified, and of how many."""

_FETCHED = 5000
_LEAST = -(2**63)


@dataclass(frozen=True, slots=True)
class FirstBad:
    """The first place where a book does not hold."""

    seq: int | None
    what: str

    def told(self) -> str:
        """Return the place and the fault in one line."""
        return f"row {self.seq}: {self.what}" if self.seq is not None else self.what


@dataclass(frozen=True, slots=True)
class BookAudit:
    """What the audit of one book found."""

    book: str
    rows: int
    head: str
    first_bad: FirstBad | None


@dataclass(frozen=True, slots=True)
class Audit:
    """What the audit found; ``faults`` lists guards that are missing or off."""

    books: tuple[BookAudit, ...]
    faults: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Tell whether every book and guard holds."""
        return not self.faults and all(book.first_bad is None for book in self.books)

    def as_json(self) -> dict[str, Any]:
        """Return the audit under the published keys."""
        return {
            "ok": self.ok,
            "books": [
                {
                    "book": b.book,
                    "rows": b.rows,
                    "head": b.head,
                    "first_bad": None
                    if b.first_bad is None
                    else {"seq": b.first_bad.seq, "what": b.first_bad.what},
                }
                for b in self.books
            ],
            "faults": list(self.faults),
        }


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """What is to be verified: whole books, or the rows recorded in a half-open interval.

    A part is chained to the row before it; balances, heads and identities without a row are of the present, so that
    they are held against the journal only where the interval has no end. Intervals that follow each other, the first
    without a beginning and the last without an end, find together what one run finds.

    Args:
        cluster: One cluster's book, or all books.
        from_at: Rows recorded from here on; the first unless given.
        to_at: Rows recorded before; all unless given.
    """

    cluster: str | None = None
    from_at: dt.datetime | None = None
    to_at: dt.datetime | None = None


EVERYTHING = AuditQuery()


class _Part(NamedTuple):
    """The rows of a book to verify, by number: ``first <= seq <= last``; no last is the end."""

    book: str
    first: int
    last: int | None

    @property
    def where(self) -> tuple[str, tuple[object, ...]]:
        """Return the condition on rows, and its values; a number below 1 belongs to the beginning."""
        first = self.first if self.first > 1 else _LEAST
        return "book = %s AND seq >= %s AND (%s::bigint IS NULL OR seq <= %s)", (
            self.book,
            first,
            *[self.last] * 2,
        )


class _Own(NamedTuple):
    """The postings of one journal row, their numbers and recorded times."""

    seq: int
    numbers: list[int]
    recorded: set[dt.datetime | None]
    postings: list[Posting]


def row_count(reader: Reader, query: AuditQuery = EVERYTHING) -> int:
    """Return how many rows ``verify`` is going to read, going by the heads of the books."""
    return sum(_size(head, _part(reader, head.book, query)) for head in _heads(reader, query))


def verify(reader: Reader, query: AuditQuery = EVERYTHING, on_progress: OnProgress | None = None) -> Audit:
    """Recompute every hash and every balance of every book in one snapshot."""
    parts = [(head, _part(reader, head.book, query)) for head in _heads(reader, query)]
    total, done = sum(_size(*part) for part in parts), 0
    audits = []
    for head, part in parts:

        def told(rows: int, before: int = done) -> None:
            if on_progress is not None:
                on_progress(before + rows, total)

        audits.append(_book(reader, head, part, told))
        done += audits[-1].rows
    unknown = driver(reader).execute(
        "(SELECT book FROM ledger.journal UNION SELECT book FROM ledger.postings"
        " UNION SELECT book FROM ledger.identities) EXCEPT SELECT book FROM ledger.books ORDER BY book"
    )
    audits += [
        BookAudit(book, 0, "", FirstBad(None, "there are rows of a book that has no head"))
        for (book,) in unknown.fetchall()
        if query.cluster in (None, book)
    ]
    return Audit(tuple(audits), tuple(guards.faults(reader)))


def _heads(reader: Reader, query: AuditQuery) -> list[BookHead]:
    rows = driver(reader).execute(
        "SELECT book, last_seq, head, last_recorded_at FROM ledger.books"
        " WHERE %s::text IS NULL OR book = %s ORDER BY book",
        (query.cluster, query.cluster),
    )
    return [BookHead(book, seq, bytes(head), at) for book, seq, head, at in rows.fetchall()]


def _size(head: BookHead, part: _Part) -> int:
    return max(0, (head.last_seq if part.last is None else part.last) - part.first + 1)


def _part(reader: Reader, book: str, query: AuditQuery) -> _Part:
    first = 1 if query.from_at is None else 1 + _rows_before(reader, book, query.from_at)
    return _Part(book, first, None if query.to_at is None else _rows_before(reader, book, query.to_at))


def _rows_before(reader: Reader, book: str, at: dt.datetime) -> int:
    """Count by number: a row whose time was changed stays between its neighbours."""
    row = driver(reader).execute(
        "SELECT coalesce(max(seq), 0) FROM ledger.journal WHERE book = %s AND recorded_at < %s", (book, at)
    ).fetchone()  # fmt: skip
    return int(row[0]) if row else 0


def _before(reader: Reader, part: _Part) -> tuple[bytes, dt.datetime | None]:
    """Return the hash that the part's first row is chained to, and the time that it was recorded after."""
    row = driver(reader).execute(
        f"SELECT row_hash, {_readable('recorded_at')} FROM ledger.journal WHERE book = %s AND seq = %s",
        (part.book, part.first - 1),
    ).fetchone()  # fmt: skip
    return (bytes(row[0]), row[1]) if row else (GENESIS, None)


def _book(reader: Reader, head: BookHead, part: _Part, told: Callable[[int], None]) -> BookAudit:
    (previous, last_at), rows = _before(reader, part), 0
    bad: FirstBad | None = None
    postings = _postings(reader, part)
    pending = next(postings, None)
    for row, stored in _journal(reader, part):
        rows += 1
        own: _Own | None = None
        while pending is not None and pending.seq <= row.seq:
            if pending.seq < row.seq:
                bad = bad or FirstBad(pending.seq, "postings without a journal row")
            else:
                own = pending
            pending = next(postings, None)
        bad = bad or _row_fault(part.first + rows - 1, previous, row, stored, own)
        if bad is None and last_at is not None and row.recorded_at <= last_at:
            bad = FirstBad(row.seq, "recorded_at does not increase")
        previous, last_at = stored, row.recorded_at
        if rows % _FETCHED == 0:
            told(rows)
    if pending is not None:
        bad = bad or FirstBad(pending.seq, "postings without a journal row")
    told(rows)
    end = part.first + rows - 1
    if part.last is None:
        bad = bad or _head_fault(head, end, previous, last_at) or _balance_fault(reader, head.book)
    elif bad is None and end < part.last:
        bad = FirstBad(part.last, f"sequence {part.last} is missing")
    bad = bad or _identity_fault(reader, part) or _text_fault(reader, part)
    return BookAudit(head.book, rows, previous.hex(), bad)


def _head_fault(
    head: BookHead, end: int, end_hash: bytes, recorded_at: dt.datetime | None
) -> FirstBad | None:
    if (end, end_hash) != (head.last_seq, head.head):
        return FirstBad(
            end, f"the book's head says {head.last_seq} rows; the journal ends otherwise at {end}"
        )
    if recorded_at not in (None, head.last_recorded_at):
        return FirstBad(end, "the book's head says that its last row was recorded at another time")
    return None


def _row_fault(
    expected_seq: int, previous: bytes, row: JournalRow, stored: bytes, own: _Own | None
) -> FirstBad | None:
    if row.seq < expected_seq:
        what = "stands twice" if row.seq == expected_seq - 1 > 0 else "is no number of a row"
        return FirstBad(row.seq, f"sequence {row.seq} {what}")
    if row.seq > expected_seq:
        return FirstBad(expected_seq, f"sequence {expected_seq} is missing; the next row has {row.seq}")
    if None in (row.recorded_at, row.effective_at):
        return FirstBad(row.seq, "an instant of the row lies outside all calendars")
    if own is not None and own.numbers != list(range(1, len(own.numbers) + 1)):
        return FirstBad(row.seq, "the postings of the row are not numbered from 1 without a gap")
    if own is not None and own.recorded != {row.recorded_at}:
        return FirstBad(row.seq, "a posting of the row was recorded at another time than the row")
    if row_hash(previous, row, own.postings if own else []) != stored:
        return FirstBad(row.seq, "the row, its postings or the row before it were changed: the hash differs")
    return None


def _journal(reader: Reader, part: _Part) -> Iterator[tuple[JournalRow, bytes]]:
    where, values = part.where
    with driver(reader).cursor(name="audit_journal") as cursor:
        cursor.itersize = _FETCHED
        cursor.execute(
            f"SELECT book, seq, {_readable('recorded_at')}, {_readable('effective_at')}, type, source, event_id,"
            " digest, workload, run, body::text, extra_ref, row_hash FROM ledger.journal"
            f" WHERE {where} ORDER BY seq, recorded_at",
            values,
        )
        for *columns, stored in cursor:
            yield JournalRow(*columns), bytes(stored)


def _readable(column: str) -> str:
    """Return the SQL of a time that is null where Python has no such time: only tampering puts one there."""
    return f"CASE WHEN {column} BETWEEN '0001-01-03' AND '9999-12-29' THEN {column} END"


def _postings(reader: Reader, part: _Part) -> Iterator[_Own]:
    where, values = part.where
    with driver(reader).cursor(name="audit_postings") as cursor:
        cursor.itersize = _FETCHED
        cursor.execute(
            f"SELECT seq, n, {_readable('recorded_at')}, code, commodity, amount, debit_pot, debit_account,"
            " debit_period, credit_pot, credit_account, credit_period, workload, run,"
            f" {_readable('effective_on')}, reverses_seq, reason FROM ledger.postings WHERE {where} ORDER BY seq, n",
            values,
        )
        for seq, group in groupby(cursor, key=lambda row: row[0]):
            own = _Own(seq, [], set(), [])
            for _, number, recorded_at, code, commodity, amount, *pots in group:
                own.numbers.append(number)
                own.recorded.add(recorded_at)
                own.postings.append(
                    Posting(code, commodity, amount, Pot(*pots[:3]), Pot(*pots[3:6]), *pots[6:])
                )
            yield own


def _balance_fault(reader: Reader, book: str) -> FirstBad | None:
    """Law 4: a balance equals the fold of its postings. The sums are zero by the shape of a posting."""
    row = (
        driver(reader)
        .execute(
            f"""
            WITH folded AS (SELECT commodity, account, period, pot, code, sum(amount) AS amount
                            FROM ({LEGS}) AS legs WHERE book = %(book)s GROUP BY 1, 2, 3, 4, 5)
            SELECT commodity, account, period, pot, code, f.amount, b.amount
            FROM folded AS f FULL JOIN (SELECT * FROM ledger.balances WHERE book = %(book)s) AS b
                 USING (commodity, account, period, pot, code)
            WHERE coalesce(f.amount, 0) <> coalesce(b.amount, 0)
            ORDER BY 1, 2, 3, 4, 5 LIMIT 1
            """,
            {"book": book},
        )
        .fetchone()
    )
    if row is None:
        return None
    commodity, account, period, pot, code, folded, stored = row
    return FirstBad(
        None,
        f"balance {account} {pot} {code} {period} ({commodity}) is {stored}, its postings sum to {folded}",
    )


def _identity_fault(reader: Reader, part: _Part) -> FirstBad | None:
    """Every row has its identity; and where the interval has no end, every identity of the book has its row."""
    where, values = part.where
    row = driver(reader).execute(
        f"SELECT min(seq) FROM (SELECT * FROM ledger.journal WHERE {where}) AS j LEFT JOIN ledger.identities AS i"
        " USING (book, event_id, source, digest, seq) WHERE i.book IS NULL", values
    ).fetchone()  # fmt: skip
    if row is not None and row[0] is not None:
        return FirstBad(row[0], "the row's identity is missing: its event could be booked again")
    if part.last is not None:
        return None
    row = driver(reader).execute(
        "SELECT event_id, source FROM"
        " (SELECT event_id, source, digest, seq FROM ledger.identities WHERE book = %(book)s"
        " EXCEPT SELECT event_id, source, digest, seq FROM ledger.journal WHERE book = %(book)s) AS i"
        " ORDER BY 1, 2 LIMIT 1",
        {"book": part.book},
    ).fetchone()  # fmt: skip
    if row is None:
        return None
    return FirstBad(None, f"event {row[0]} of {row[1]} has an identity and no row: it could not be booked")


def _text_fault(reader: Reader, part: _Part) -> FirstBad | None:
    """What was put aside for a row is what the row refers to: the reference is the digest of salt and text."""
    where, values = part.where
    row = driver(reader).execute(
        f"SELECT min(seq) FROM (SELECT seq, extra_ref FROM ledger.journal WHERE {where} AND extra_ref IS NOT NULL) AS j"
        " JOIN side.texts AS t ON t.ref = j.extra_ref WHERE sha256(t.salt || t.body) <> t.ref", values
    ).fetchone()  # fmt: skip
    if row is None or row[0] is None:
        return None
    return FirstBad(row[0], "the text that was put aside for the row was changed: its digest differs")
