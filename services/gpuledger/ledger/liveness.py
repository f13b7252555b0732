"""How alive each book is: what is open, what is measured, what the hosts report that nobody has told of."""

import datetime as dt

from gpuledger.database.engine import Reader
from gpuledger.ledger.copying import driver


def open_runs(reader: Reader) -> dict[str, int]:
    """Return book -> runs that have not ended as far as is known; books without any are absent."""
    rows = driver(reader).execute(
        "SELECT book, count(DISTINCT (workload, run)) FROM ledger.segments"
        " WHERE until_seq IS NULL AND to_at IS NULL GROUP BY book"
    )
    return dict(rows.fetchall())


def with_inventory(reader: Reader) -> set[str]:
    """Return the books of which some host is, or was, installed."""
    rows = driver(reader).execute(
        "SELECT book FROM ledger.books AS b WHERE EXISTS (SELECT FROM ledger.hosts AS h WHERE h.book = b.book)"
    )
    return {book for (book,) in rows}


def with_work(reader: Reader) -> set[str]:
    """Return the books in which anything held a GPU, or asks for one."""
    rows = driver(reader).execute(
        "SELECT book FROM ledger.books AS b WHERE EXISTS (SELECT FROM ledger.segments AS s WHERE s.book = b.book)"
        " OR EXISTS (SELECT FROM ledger.waits AS w WHERE w.book = b.book)"
    )
    return {book for (book,) in rows}


def measured_since(reader: Reader, since: dt.datetime) -> set[str]:
    """Return the books of which a GPU was measured at a time or later."""
    rows = driver(reader).execute(
        "SELECT DISTINCT book FROM telemetry.buckets WHERE bucket_at >= %s", (since,)
    )
    return {book for (book,) in rows}


def unknown_runs(reader: Reader, since: dt.datetime) -> dict[str, list[str]]:
    """Return book -> the names by which hosts reported runs since a time that no scheduler has told of, sorted."""
    rows = driver(reader).execute(
        """
        SELECT book, array_agg(DISTINCT run ORDER BY run) FROM telemetry.buckets AS b
        WHERE bucket_at >= %s AND workload = '' AND run <> ''
          AND NOT EXISTS (SELECT FROM telemetry.handles AS h WHERE h.book = b.book AND h.handle = b.run)
        GROUP BY book
        """,
        (since,),
    )
    return dict(rows.fetchall())


__all__ = ["measured_since", "open_runs", "unknown_runs", "with_inventory", "with_work"]
