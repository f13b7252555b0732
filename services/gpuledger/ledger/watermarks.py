"""Up to when each source has told all it knows: a source's heartbeats advance its watermark, and nothing turns it back.

A watermark follows from the journal alone: the newest moment of a source's heartbeats. Facts that a source tells
later of a time before its watermark are late; a source whose watermark stands still is silent.
"""

import datetime as dt
from collections.abc import Iterable
from typing import NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.ledger.copying import driver

HEARTBEAT = "source.heartbeat"

STORED = "SELECT book, source, told_until_at FROM ledger.watermarks"

IN_THE_JOURNAL = (
    "SELECT book, source, max(effective_at) FROM ledger.journal"
    f" WHERE workload IS NULL AND type = '{HEARTBEAT}' GROUP BY book, source"
)


class Watermark(NamedTuple):
    """Up to when a source has told a book all it knows, but for the gaps that it declared."""

    book: str
    source: str
    told_until_at: dt.datetime


def advance(writer: Writer, book: str, heartbeats: Iterable[tuple[str, dt.datetime]]) -> None:
    """Bring the watermarks of a book up to its heartbeats: (source, moment), in any order."""
    newest: dict[str, dt.datetime] = {}
    for source, at in heartbeats:
        newest[source] = max(at, newest.get(source, at))
    if newest:
        driver(writer).execute(
            "INSERT INTO ledger.watermarks (book, source, told_until_at)"
            " SELECT %s, * FROM unnest(%s::text[], %s::timestamptz[])"
            " ON CONFLICT (book, source) DO UPDATE"
            " SET told_until_at = greatest(watermarks.told_until_at, excluded.told_until_at)",
            (book, list(newest), list(newest.values())),
        )


def rebuild(writer: Writer) -> None:
    """Make every watermark from the journal; there are none before."""
    driver(writer).execute(f"INSERT INTO ledger.watermarks (book, source, told_until_at) {IN_THE_JOURNAL}")


def watermarks(reader: Reader) -> list[Watermark]:
    """Return the watermark of every source of every book, by book and source."""
    rows = driver(reader).execute(f"{STORED} ORDER BY book, source")
    return [Watermark(*row) for row in rows]
