"""Heads of books that are kept outside the database, and what they say about it later (law 5).

The chain proves that a row fits the row before it. It cannot prove that the last rows, or a whole book,
were not taken away, nor that somebody did not seal all rows anew: whoever holds the database can do all
three without a contradiction. A head that was written down elsewhere contradicts them.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Annotated, NamedTuple

import msgspec

from gpuledger.database.engine import Reader
from gpuledger.kernel.errors import Refused
from gpuledger.ledger.audit import Audit, BookAudit, FirstBad
from gpuledger.ledger.copying import driver
from gpuledger.ledger.queries import BookStatus

_Zoned = Annotated[dt.datetime, msgspec.Meta(tz=True)]


class ExportedHead(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a book stood when its head was exported.

    Args:
        book: The book.
        rows: How many rows it had, which is the number of its newest row.
        head: The hash of that row, in hexadecimal.
        recorded_at: When that row was recorded.
        exported_at: When the head was exported.
    """

    book: Annotated[str, msgspec.Meta(min_length=1)]
    rows: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
    head: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    recorded_at: _Zoned
    exported_at: _Zoned


class Exports(NamedTuple):
    """What a file of heads holds: a line each, then perhaps the rest of an export that did not end."""

    heads: tuple[ExportedHead, ...]
    rest: bytes


_decoder = msgspec.json.Decoder(ExportedHead)
_encoder = msgspec.json.Encoder()


def parse(content: bytes, name: str) -> Exports:
    """Read the lines of a file of heads; a last line that does not end is an export that never happened.

    Raises:
        Refused: When a line is no exported head; names the file and the line.
    """
    *lines, rest = content.split(b"\n")
    return Exports(tuple(_head(line, f"{name}:{number}") for number, line in enumerate(lines, 1)), rest)


def _head(line: bytes, place: str) -> ExportedHead:
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(
            f"{place} is no exported head: {error}",
            hint="restore the file as gpuledger audit export-heads wrote it; no line of it may change",
        ) from error


def lines(heads: Iterable[ExportedHead]) -> bytes:
    """Return the lines that heads are exported as."""
    return b"".join(_encoder.encode(head) + b"\n" for head in heads)


def newest(exported: Iterable[ExportedHead]) -> list[ExportedHead]:
    """Return the last line of each book, sorted by book."""
    last = {head.book: head for head in exported}
    return [last[book] for book in sorted(last)]


def moved(
    exported: Iterable[ExportedHead], books: Iterable[BookStatus], now: dt.datetime
) -> list[ExportedHead]:
    """Return the heads of the books that stand elsewhere than their last line says."""
    last = {head.book: (head.rows, head.head) for head in exported}
    return [
        ExportedHead(
            book=b.book, rows=b.rows, head=b.head, recorded_at=b.last_recorded_at.astimezone(dt.UTC), exported_at=now
        )
        for b in books
        if b.rows and last.get(b.book) != (b.rows, b.head)
    ]  # fmt: skip


def contradicted(reader: Reader, exported: Sequence[ExportedHead]) -> dict[str, FirstBad]:
    """Return the books that no longer have a row with an exported hash, and the first such row."""
    hashes = driver(reader).execute(
        "SELECT j.book, j.seq, encode(j.row_hash, 'hex') FROM ledger.journal AS j"
        " JOIN (SELECT DISTINCT * FROM unnest(%s::text[], %s::bigint[])) AS e (book, seq) USING (book, seq)",
        ([head.book for head in exported], [head.rows for head in exported]),
    )
    found = {(book, seq): head for book, seq, head in hashes}
    books = sorted({head.book for head in exported})
    ends = driver(reader).execute(
        "SELECT book, (SELECT max(seq) FROM ledger.journal AS j WHERE j.book = e.book)"
        " FROM unnest(%s::text[]) AS e (book)",
        (books,),
    )
    last_row = {book: end or 0 for book, end in ends}
    ordered = sorted(exported, key=lambda head: (head.book, head.rows, head.exported_at))
    judged = {
        book: first_contradiction(list(own), {seq: h for (b, seq), h in found.items() if b == book}, last_row[book])
        for book, own in groupby(ordered, key=lambda head: head.book)
    }  # fmt: skip
    return {book: bad for book, bad in judged.items() if bad is not None}


def first_contradiction(
    exported: Sequence[ExportedHead], hashes: Mapping[int, str], end: int
) -> FirstBad | None:
    """Say where a book first differs from what was exported of it.

    Args:
        exported: Its exported heads by ascending row.
        hashes: The hashes of those rows that are there now.
        end: The number of its last row; 0 when it has none.
    """
    holds = 0
    for head in exported:
        if hashes.get(head.rows) == head.head:
            holds = head.rows
            continue
        when = f"exported at {head.exported_at:%Y-%m-%dT%H:%M:%SZ}"
        if end == 0:
            return FirstBad(1, f"the book is gone; it had {head.rows} rows when its head was {when}")
        if end < head.rows:
            return FirstBad(
                end + 1, f"rows {end + 1} to {head.rows} are gone; the head of row {head.rows} was {when}"
            )
        if head.rows not in hashes:
            return FirstBad(head.rows, f"row {head.rows} is gone; its head was {when}")
        return FirstBad(
            head.rows, f"the hash is not the one {when}: something in rows {holds + 1} to {head.rows} was rewritten"
        )  # fmt: skip
    return None


def held_against(audit: Audit, bad: Mapping[str, FirstBad]) -> Audit:
    """Return the audit with what the heads contradict; of two faults of a book the earlier row is named."""
    books = [replace(b, first_bad=_earlier(b.first_bad, bad.get(b.book))) for b in audit.books]
    gone = bad.keys() - {b.book for b in audit.books}
    books += [BookAudit(book, 0, "", bad[book]) for book in sorted(gone)]
    return replace(audit, books=tuple(books))


def _earlier(one: FirstBad | None, other: FirstBad | None) -> FirstBad | None:
    faults = [fault for fault in (one, other) if fault is not None]
    return min(faults, key=lambda fault: (fault.seq is None, fault.seq or 0), default=None)
