"""Verify a book from its rows alone: chain, gaps, conservation, balances, and the guards themselves."""

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from gpuledger.database.engine import Reader
from gpuledger.ledger.chain import GENESIS, JournalRow, row_hash
from gpuledger.ledger.charges import Posting, Pot
from gpuledger.ledger.copying import driver
from gpuledger.ledger.store import BookHead

_GUARDED = ("journal", "postings")
_TRIGGERS = {
    "append_only_rows": "BEFORE DELETE OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change()",
    "append_only_table": "BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change()",
}


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

    A part is chained to the row before it; balances and heads are of the present, so that they are held
    against the journal only where the interval has no end.

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
        """Return the condition on rows, and its values."""
        return "book = %s AND seq >= %s AND (%s::bigint IS NULL OR seq <= %s)", (*self[:2], *[self.last] * 2)


class _Own(NamedTuple):
    """The postings of one journal row, and their numbers."""

    seq: int
    numbers: list[int]
    postings: list[Posting]


def verify(reader: Reader, query: AuditQuery = EVERYTHING) -> Audit:
    """Recompute every hash and every balance of every book in one snapshot."""
    rows = driver(reader).execute(
        "SELECT book, last_seq, head, last_recorded_at FROM ledger.books"
        " WHERE %s::text IS NULL OR book = %s ORDER BY book",
        (query.cluster, query.cluster),
    )
    heads = [BookHead(book, seq, bytes(head), at) for book, seq, head, at in rows.fetchall()]
    audits = [_book(reader, head, _part(reader, head.book, query)) for head in heads]
    unknown = driver(reader).execute(
        "(SELECT book FROM ledger.journal UNION SELECT book FROM ledger.postings)"
        " EXCEPT SELECT book FROM ledger.books ORDER BY book"
    )
    audits += [
        BookAudit(book, 0, "", FirstBad(None, "there are rows of a book that has no head"))
        for (book,) in unknown.fetchall()
        if query.cluster in (None, book)
    ]
    return Audit(tuple(audits), tuple(_missing_guards(reader)))


def _part(reader: Reader, book: str, query: AuditQuery) -> _Part:
    first = 1 if query.from_at is None else 1 + _rows_before(reader, book, query.from_at)
    return _Part(book, first, None if query.to_at is None else _rows_before(reader, book, query.to_at))


def _rows_before(reader: Reader, book: str, at: dt.datetime) -> int:
    """Count by number: a row whose time was changed stays between its neighbours."""
    row = driver(reader).execute(
        "SELECT coalesce(max(seq), 0) FROM ledger.journal WHERE book = %s AND recorded_at < %s", (book, at)
    ).fetchone()  # fmt: skip
    return int(row[0]) if row else 0


def _before(reader: Reader, part: _Part) -> bytes:
    """Return the hash that the part's first row is chained to."""
    row = driver(reader).execute(
        "SELECT row_hash FROM ledger.journal WHERE book = %s AND seq = %s", (part.book, part.first - 1)
    ).fetchone()  # fmt: skip
    return bytes(row[0]) if row else GENESIS


def _book(reader: Reader, head: BookHead, part: _Part) -> BookAudit:
    previous, rows = _before(reader, part), 0
    bad: FirstBad | None = None
    last_at: dt.datetime | None = None
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
    if pending is not None:
        bad = bad or FirstBad(pending.seq, "postings without a journal row")
    end = part.first + rows - 1
    if part.last is None:
        if bad is None and (end, previous) != (head.last_seq, head.head):
            bad = FirstBad(
                end, f"the book's head says {head.last_seq} rows; the journal ends otherwise at {end}"
            )
        bad = bad or _balance_fault(reader, head.book)
    elif bad is None and end < part.last:
        bad = FirstBad(part.last, f"sequence {part.last} is missing")
    return BookAudit(head.book, rows, previous.hex(), bad)


def _row_fault(
    expected_seq: int, previous: bytes, row: JournalRow, stored: bytes, own: _Own | None
) -> FirstBad | None:
    if row.seq != expected_seq:
        return FirstBad(expected_seq, f"sequence {expected_seq} is missing; the next row has {row.seq}")
    if None in (row.recorded_at, row.effective_at):
        return FirstBad(row.seq, "an instant of the row lies outside all calendars")
    if own is not None and own.numbers != list(range(1, len(own.numbers) + 1)):
        return FirstBad(row.seq, "the postings of the row are not numbered from 1 without a gap")
    if row_hash(previous, row, own.postings if own else []) != stored:
        return FirstBad(row.seq, "the row, its postings or the row before it were changed: the hash differs")
    return None


def _journal(reader: Reader, part: _Part) -> Iterator[tuple[JournalRow, bytes]]:
    where, values = part.where
    with driver(reader).cursor(name="audit_journal") as cursor:
        cursor.itersize = 5000
        cursor.execute(
            f"SELECT book, seq, {_readable('recorded_at')}, {_readable('effective_at')}, type, source, event_id,"
            " digest, workload, run, body::text, extra_ref, row_hash FROM ledger.journal"
            f" WHERE {where} ORDER BY seq",
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
        cursor.itersize = 5000
        cursor.execute(
            "SELECT seq, n, code, commodity, amount, debit_pot, debit_account, debit_period, credit_pot,"
            f" credit_account, credit_period, workload, run, {_readable('effective_on')}, reverses_seq, reason"
            f" FROM ledger.postings WHERE {where} ORDER BY seq, n",
            values,
        )
        for seq, group in groupby(cursor, key=lambda row: row[0]):
            own = _Own(seq, [], [])
            for _, number, code, commodity, amount, *pots in group:
                own.numbers.append(number)
                own.postings.append(
                    Posting(code, commodity, amount, Pot(*pots[:3]), Pot(*pots[3:6]), *pots[6:])
                )
            yield own


def _balance_fault(reader: Reader, book: str) -> FirstBad | None:
    """Law 4: a balance equals the fold of its postings. The sums are zero by the shape of a posting."""
    row = (
        driver(reader)
        .execute(
            """
            WITH legs AS (
                SELECT commodity, debit_account AS account, debit_period AS period, debit_pot AS pot, code,
                       -amount AS amount
                FROM ledger.postings WHERE book = %(book)s
                UNION ALL
                SELECT commodity, credit_account, credit_period, credit_pot, code, amount
                FROM ledger.postings WHERE book = %(book)s),
            folded AS (SELECT commodity, account, period, pot, code, sum(amount) AS amount
                       FROM legs GROUP BY 1, 2, 3, 4, 5)
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


def _missing_guards(reader: Reader) -> Iterator[str]:
    rows = driver(reader).execute(
        "SELECT c.relname, t.tgname, t.tgenabled::text, pg_get_triggerdef(t.oid) FROM pg_trigger AS t"
        " JOIN pg_class AS c ON c.oid = t.tgrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE n.nspname = 'ledger' AND NOT t.tgisinternal"
    )
    found = {(table, name): (state, definition) for table, name, state, definition in rows}
    for table in _GUARDED:
        for name, does in _TRIGGERS.items():
            state, definition = found.get((table, name), (None, ""))
            if state is None:
                yield f"trigger {name} on ledger.{table} is missing"
            elif state != "A":
                yield f"trigger {name} on ledger.{table} is not ENABLE ALWAYS"
            elif not definition.endswith(does.format(table=f"ledger.{table}")):
                yield f"trigger {name} on ledger.{table} does something else: {definition}"
    source = driver(reader).execute(
        "SELECT prosrc FROM pg_proc WHERE oid = to_regprocedure('ledger.refuse_change()')"
    ).fetchone()  # fmt: skip
    if source is None or not re.match(r"\s*BEGIN\s+RAISE EXCEPTION\s", source[0]):
        yield "function ledger.refuse_change() does not refuse"
    writable = driver(reader).execute(
        "SELECT t, p FROM pg_roles AS r, unnest(%s::text[]) AS t, unnest(ARRAY['UPDATE', 'DELETE', 'TRUNCATE']) AS p"
        " WHERE r.rolname = 'gpuledger_writer' AND CASE p"
        " WHEN 'UPDATE' THEN has_any_column_privilege(r.oid, 'ledger.' || t, p)"
        " ELSE has_table_privilege(r.oid, 'ledger.' || t, p) END ORDER BY 1, 2",
        (list(_GUARDED),),
    )
    for table, privilege in writable:
        yield f"the writer role holds {privilege} on ledger.{table}"
