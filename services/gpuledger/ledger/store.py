"""The journal's and postings' SQL: what a batch reads before it is sealed, and writes after."""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from psycopg import IntegrityError

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.envelope import decode_data
from gpuledger.kernel.clock import EPOCH, seconds
from gpuledger.kernel.errors import Corrupt
from gpuledger.ledger.chain import GENESIS, JournalRow
from gpuledger.ledger.charges import Key, Posted, Posting
from gpuledger.ledger.copying import copy_rows, driver
from gpuledger.ledger.facts import Known

JOURNAL_COLUMNS = (*JournalRow._fields, "row_hash")
IDENTITY_COLUMNS = ("book", "event_id", "source", "digest", "seq")
POSTING_COLUMNS = (
    "book", "seq", "n", "recorded_at", "code", "commodity", "amount",
    "debit_pot", "debit_account", "debit_period", "credit_pot", "credit_account", "credit_period",
    "workload", "run", "effective_on", "reverses_seq", "reason",
)  # fmt: skip


class BookHead(NamedTuple):
    """The end of a book's chain."""

    book: str
    last_seq: int
    head: bytes
    last_recorded_at: dt.datetime


def lock_book(writer: Writer, book: str) -> BookHead:
    """Take the book's lock until the transaction ends and return its head; a new book begins at 0."""
    connection = driver(writer)
    connection.execute(
        "INSERT INTO ledger.books (book, last_seq, head, last_recorded_at) VALUES (%s, 0, %s, %s)"
        " ON CONFLICT (book) DO NOTHING",
        (book, GENESIS, EPOCH),
    )
    row = connection.execute(
        "SELECT last_seq, head, last_recorded_at FROM ledger.books WHERE book = %s FOR UPDATE", (book,)
    ).fetchone()
    assert row is not None  # noqa: S101 - inserted above
    return BookHead(book, row[0], bytes(row[1]), row[2])


def write_head(writer: Writer, head: BookHead) -> None:
    """Record the new end of the chain."""
    driver(writer).execute(
        "UPDATE ledger.books SET last_seq = %s, head = %s, last_recorded_at = %s WHERE book = %s",
        (head.last_seq, head.head, head.last_recorded_at, head.book),
    )


def known_identities(
    connection: Reader | Writer, book: str, ids: Sequence[str]
) -> set[tuple[str, str, bytes]]:
    """Return (id, source, digest) of the journal's rows that carry one of the ids."""
    rows = driver(connection).execute(
        "SELECT event_id, source, digest FROM ledger.identities WHERE book = %s AND event_id = ANY(%s)",
        (book, list(ids)),
    )
    return {(event_id, source, bytes(digest)) for event_id, source, digest in rows}


def facts_of(connection: Reader | Writer, book: str, workloads: Sequence[str]) -> Iterator[tuple[str, Known]]:
    """Yield every journalled fact of the workloads, in sequence."""
    if not workloads:
        return
    rows = driver(connection).execute(
        "SELECT workload, type, body::text, effective_at, source, digest FROM ledger.journal"
        " WHERE book = %s AND workload = ANY(%s) ORDER BY seq",
        (book, list(workloads)),
    )
    for name, type_, body, effective_at, source, digest in rows:
        yield name, Known(decode_data(type_, body), seconds(effective_at), source, bytes(digest))


def workloads_ending_after(writer: Writer, book: str, at: dt.datetime) -> list[str]:
    """Return the workloads that are charged for time after an instant."""
    rows = driver(writer).execute(
        "SELECT DISTINCT workload FROM ledger.segments WHERE book = %s AND until_seq IS NULL AND to_at > %s",
        (book, at),
    )
    return [workload for (workload,) in rows]


def posted_of(
    connection: Reader | Writer, book: str, workloads: Sequence[str]
) -> Iterator[tuple[str, Key, Posted]]:
    """Yield the net amounts posted for the workloads."""
    if not workloads:
        return
    rows = driver(connection).execute(
        """
        SELECT workload, code, commodity, account, run, effective_on, period, sum(signed), max(seq)
        FROM (SELECT p.*,
                     -- A correction runs the other way: out of the pot that use goes into.
                     CASE WHEN credit_pot IN ('spent', 'unallocated') THEN amount ELSE -amount END AS signed,
                     CASE WHEN credit_pot IN ('spent', 'unallocated')
                          THEN credit_account ELSE debit_account END AS account,
                     CASE WHEN credit_pot IN ('spent', 'unallocated')
                          THEN credit_period ELSE debit_period END AS period
              FROM ledger.postings AS p
              WHERE book = %s AND workload = ANY(%s) AND code IN ('charge', 'unallocated')) AS own
        GROUP BY workload, code, commodity, account, run, effective_on, period
        """,
        (book, list(workloads)),
    )
    for name, code, commodity, account, run, day, period, amount, seq in rows:
        yield name, Key(code, commodity, account, run, day, period), Posted(int(amount), seq)


def make_partitions(writer: Writer, head: BookHead, rows: Sequence[tuple[JournalRow, bytes]]) -> None:
    """Have the partitions made that the rows need, when they enter a month that their book has not been in.

    Args:
        writer: The transaction that appends.
        head: The book's head before the rows.
        rows: Sealed rows, in sequence.
    """
    last = _month(head.last_recorded_at) if head.last_seq else None
    for at in (rows[0][0].recorded_at, rows[-1][0].recorded_at):
        if _month(at) != last:
            driver(writer).execute("SELECT ledger.make_partitions(%s)", (at,))
            last = _month(at)


def _month(at: dt.datetime) -> tuple[int, int]:
    utc = at.astimezone(dt.UTC)
    return utc.year, utc.month


def write_rows(
    writer: Writer,
    rows: Sequence[tuple[JournalRow, bytes]],
    postings: Sequence[tuple[JournalRow, Sequence[Posting]]],
) -> None:
    """Append sealed rows, their identities and their postings.

    Raises:
        Corrupt: When the database refuses them.
    """
    identities = ((row.book, row.event_id, row.source, row.digest, row.seq) for row, _ in rows)
    legs = (posting_row(row, n, p) for row, of in postings for n, p in enumerate(of, 1))
    try:
        copy_rows(writer, "ledger.journal", JOURNAL_COLUMNS, ((*row, sealed) for row, sealed in rows))
        copy_rows(writer, "ledger.identities", IDENTITY_COLUMNS, identities)
        if postings:
            copy_rows(writer, "ledger.postings", POSTING_COLUMNS, legs)
    except IntegrityError as error:
        raise Corrupt(
            f"the history of {rows[0][0].book} does not take what follows from it: {error}",
            hint="stop writing and run gpuledger audit verify: it names what was changed or taken away",
        ) from error


def posting_row(row: JournalRow, n: int, posting: Posting) -> tuple[object, ...]:
    """Return the n-th posting of a journal row as the columns of its table."""
    code, commodity, amount, debit, credit, *rest = posting
    return (row.book, row.seq, n, row.recorded_at, code, commodity, amount, *debit, *credit, *rest)


def add_to_balances(writer: Writer, book: str, postings: Iterable[Sequence[Posting]]) -> None:
    """Add the postings to the balances, in key order so that two writers never wait in a circle."""
    deltas: dict[tuple[str, str, str, str, str], int] = {}
    for of in postings:
        for posting in of:
            for side, sign in ((posting.debit, -1), (posting.credit, 1)):
                key = (posting.commodity, side.account, side.period, side.pot, posting.code)
                deltas[key] = deltas.get(key, 0) + sign * posting.amount
    if not deltas:
        return
    columns = list(zip(*((*key, amount) for key, amount in sorted(deltas.items())), strict=True))
    driver(writer).execute(
        """
        INSERT INTO ledger.balances (book, commodity, account, period, pot, code, amount)
        SELECT %s, * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[])
        ON CONFLICT (book, commodity, account, period, pot, code)
        DO UPDATE SET amount = balances.amount + excluded.amount
        """,
        (book, *map(list, columns)),
    )
