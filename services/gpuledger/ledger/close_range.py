"""The rows of a book that one close is the first to hold: from where to where, the head there, and two digests.

The head proves the rows and their postings together. The digests are of the rows alone and of the postings alone, so
that a byte that changed later is found in one of them and it is told in which.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from gpuledger.database.engine import Reader, Writer
from gpuledger.ledger.chain import GENESIS
from gpuledger.ledger.copying import driver

_FETCHED = 5000

# Times and days as PostgreSQL prints them whatever the session says: also those that Python has no word for.
_JOURNAL = """
    SELECT seq, extract(epoch FROM recorded_at)::text, extract(epoch FROM effective_at)::text, type, source, event_id,
           encode(digest, 'hex'), workload, run, body::text, encode(extra_ref, 'hex')
    FROM ledger.journal WHERE book = %s AND seq >= %s AND seq <= %s ORDER BY seq, recorded_at
"""
_POSTINGS = """
    SELECT seq, n, extract(epoch FROM recorded_at)::text, code, commodity, amount, debit_pot, debit_account,
           debit_period, credit_pot, credit_account, credit_period, workload, run,
           to_char(effective_on, 'YYYY-MM-DD'), reverses_seq, reason
    FROM ledger.postings WHERE book = %s AND seq >= %s AND seq <= %s ORDER BY seq, n, recorded_at
"""


class Range(NamedTuple):
    """Rows of a book, by number: ``first_seq <= seq <= last_seq``; none when the last is below the first.

    Args:
        rows: How many there are.
        postings: How many postings they caused.
        head: The hash of the last row, in hexadecimal.
        journal_digest: SHA-256 over the rows without their hashes, in hexadecimal.
        postings_digest: SHA-256 over the postings, in hexadecimal.
    """

    book: str
    first_seq: int
    last_seq: int
    rows: int
    postings: int
    head: str
    journal_digest: str
    postings_digest: str


def read(connection: Reader | Writer, book: str, first_seq: int, last_seq: int) -> Range:
    """Read rows of a book and digest them.

    Args:
        connection: A transaction.
        book: The book.
        first_seq: The first row.
        last_seq: The last; 0 for a book without rows.
    """
    bounds = (book, first_seq, last_seq)
    rows, journal = _digest(_rows(connection, _JOURNAL, bounds))
    count, postings = _digest(_rows(connection, _POSTINGS, bounds))
    row = driver(connection).execute(
        "SELECT encode(row_hash, 'hex') FROM ledger.journal WHERE book = %s AND seq = %s", (book, last_seq)
    ).fetchone()  # fmt: skip
    head = row[0] if row else GENESIS.hex()
    return Range(book, first_seq, last_seq, rows, count, head, journal, postings)


def _rows(
    connection: Reader | Writer, query: str, bounds: tuple[str, int, int]
) -> Iterator[Sequence[object]]:
    with driver(connection).cursor(name="close_range") as cursor:
        cursor.itersize = _FETCHED
        cursor.execute(query, bounds)
        yield from cursor


def _digest(rows: Iterator[Sequence[object]]) -> tuple[int, str]:
    """Return how many rows there are, and SHA-256 over them, a JSON array a line."""
    hashed, count = hashlib.sha256(), 0
    for row in rows:
        hashed.update(msgspec.json.encode(row) + b"\n")
        count += 1
    return count, hashed.hexdigest()
