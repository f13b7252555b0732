"""Verify a book from its rows alone: chain, gaps, conservation, balances, and the guards themselves."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from gpuledger.database.engine import Reader
from gpuledger.ledger.chain import GENESIS, JournalRow, row_hash
from gpuledger.ledger.charges import Posting, Pot
from gpuledger.ledger.copying import driver
from gpuledger.ledger.store import BookHead

_GUARDED = ("journal", "postings")
_TRIGGERS = ("append_only_rows", "append_only_table")


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


def verify(reader: Reader) -> Audit:
    """Recompute every hash and every balance of every book in one snapshot."""
    rows = driver(reader).execute(
        "SELECT book, last_seq, head, last_recorded_at FROM ledger.books ORDER BY book"
    )
    heads = [BookHead(book, seq, bytes(head), at) for book, seq, head, at in rows.fetchall()]
    audits = [_book(reader, head) for head in heads]
    unknown = driver(reader).execute(
        "SELECT DISTINCT book FROM ledger.journal WHERE book NOT IN (SELECT book FROM ledger.books)"
    )
    audits += [
        BookAudit(book, 0, "", FirstBad(None, "the journal has rows of a book that has no head"))
        for (book,) in unknown.fetchall()
    ]
    return Audit(tuple(audits), tuple(_missing_guards(reader)))


def _book(reader: Reader, head: BookHead) -> BookAudit:
    previous, rows, bad = GENESIS, 0, None
    last_at = None
    postings = _postings(reader, head.book)
    pending = next(postings, None)
    for row, stored in _journal(reader, head.book):
        rows += 1
        own: list[Posting] = []
        while pending is not None and pending[0] <= row.seq:
            if pending[0] < row.seq:
                bad = bad or FirstBad(pending[0], "postings without a journal row")
            else:
                own = pending[1]
            pending = next(postings, None)
        bad = bad or _row_fault(rows, previous, row, stored, own)
        if bad is None and last_at is not None and row.recorded_at <= last_at:
            bad = FirstBad(row.seq, "recorded_at does not increase")
        previous, last_at = stored, row.recorded_at
    if pending is not None:
        bad = bad or FirstBad(pending[0], "postings without a journal row")
    if bad is None and (rows, previous) != (head.last_seq, head.head):
        bad = FirstBad(
            rows, f"the book's head says {head.last_seq} rows; the journal ends otherwise at {rows}"
        )
    bad = bad or _balance_fault(reader, head.book)
    return BookAudit(head.book, rows, previous.hex(), bad)


def _row_fault(
    expected_seq: int, previous: bytes, row: JournalRow, stored: bytes, postings: list[Posting]
) -> FirstBad | None:
    if row.seq != expected_seq:
        return FirstBad(expected_seq, f"sequence {expected_seq} is missing; the next row has {row.seq}")
    if row_hash(previous, row, postings) != stored:
        return FirstBad(row.seq, "the row, its postings or the row before it were changed: the hash differs")
    return None


def _journal(reader: Reader, book: str) -> Iterator[tuple[JournalRow, bytes]]:
    with driver(reader).cursor(name="audit_journal") as cursor:
        cursor.itersize = 5000
        cursor.execute(
            "SELECT book, seq, recorded_at, effective_at, type, source, event_id, digest, workload, run, body::text,"
            " extra_ref, row_hash FROM ledger.journal WHERE book = %s ORDER BY seq",
            (book,),
        )
        for *columns, stored in cursor:
            yield JournalRow(*columns), bytes(stored)


def _postings(reader: Reader, book: str) -> Iterator[tuple[int, list[Posting]]]:
    with driver(reader).cursor(name="audit_postings") as cursor:
        cursor.itersize = 5000
        cursor.execute(
            "SELECT seq, n, code, commodity, amount, debit_pot, debit_account, debit_period, credit_pot,"
            " credit_account, credit_period, workload, run, effective_on, reverses_seq, reason"
            " FROM ledger.postings WHERE book = %s ORDER BY seq, n",
            (book,),
        )
        for seq, group in groupby(cursor, key=lambda row: row[0]):
            yield (
                seq,
                [
                    Posting(code, commodity, amount, Pot(*pots[:3]), Pot(*pots[3:6]), *pots[6:])
                    for _, _, code, commodity, amount, *pots in group
                ],
            )


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
        "SELECT c.relname, t.tgname, t.tgenabled FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid"
        " JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = 'ledger' AND NOT t.tgisinternal"
    )
    enabled = {(table, name): state for table, name, state in rows}
    for table in _GUARDED:
        for name in _TRIGGERS:
            state = enabled.get((table, name))
            if state is None:
                yield f"trigger {name} on ledger.{table} is missing"
            elif state not in ("A", b"A"):
                yield f"trigger {name} on ledger.{table} is not ENABLE ALWAYS"
    writable = driver(reader).execute(
        "SELECT table_name, privilege_type FROM information_schema.role_table_grants WHERE table_schema = 'ledger'"
        " AND grantee = 'gpuledger_writer' AND table_name = ANY(%s) AND privilege_type NOT IN ('SELECT', 'INSERT')",
        (list(_GUARDED),),
    )
    for table, privilege in writable:
        yield f"the writer role holds {privilege} on ledger.{table}"
