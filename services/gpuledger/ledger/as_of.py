"""What the books said at a recorded time: it resolves to a row of each book (law 6).

Rows of projections are in force from ``since_seq`` until ``until_seq``.
"""

import datetime as dt
from collections.abc import Mapping

from gpuledger.database.engine import Reader, Writer
from gpuledger.ledger import queries
from gpuledger.ledger.copying import driver

Vector = Mapping[str, int]
"""Book -> the row up to which it is read; a book that is not named had none."""


def vector_of(reader: Reader | Writer, as_of: queries.AsOf) -> Vector | None:
    """Return the row of each book that was its newest at a recorded time; None for now."""
    return None if as_of is None else queries.sequences(reader, as_of)


def heads_at(reader: Reader | Writer, as_of: dt.datetime) -> list[queries.BookStatus]:
    """Return every book that had a row at a recorded time, with its number of rows and its head; sorted by name."""
    rows = driver(reader).execute(
        "SELECT b.book, newest.seq, encode(newest.row_hash, 'hex'), newest.recorded_at FROM ledger.books AS b"
        " JOIN LATERAL (SELECT j.seq, j.row_hash, j.recorded_at FROM ledger.journal AS j"
        " WHERE j.book = b.book AND j.recorded_at <= %s ORDER BY j.seq DESC LIMIT 1) AS newest ON true ORDER BY b.book",
        (as_of,),
    )
    return [queries.BookStatus(*row) for row in rows]


def seq_of(vector: Vector | None, book: str) -> int | None:
    """Return the row up to which a book is read; None for all."""
    return None if vector is None else vector.get(book, 0)


def said(alias: str, seq: int | None) -> str:
    """Return the condition on rows that were in force when a row of the book was the newest; now for None.

    Args:
        alias: The name of the table in the query.
        seq: The row of the book; the query is given it as ``seq``.
    """
    if seq is None:
        return f"{alias}.until_seq IS NULL"
    return f"{alias}.since_seq <= %(seq)s AND ({alias}.until_seq IS NULL OR {alias}.until_seq > %(seq)s)"
