"""The hash chain of a book: one canonical encoding of every column and of the row's postings.

The encoding is a JSON array of the columns in a fixed order (instants as integer microseconds since
the epoch, bytes as base64, days as ISO dates), which is injective. A row's hash covers the previous
row's hash, so that a change anywhere changes every later head (law 5).
"""

import datetime as dt
import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from gpuledger.kernel.clock import EPOCH
from gpuledger.ledger.charges import Posting

GENESIS = bytes(32)
"""The hash before the first row of a book."""

_encode = msgspec.json.Encoder().encode
_MICROSECOND = dt.timedelta(microseconds=1)


class JournalRow(NamedTuple):
    """A journal row without its hash."""

    book: str
    seq: int
    recorded_at: dt.datetime
    effective_at: dt.datetime
    type: str
    source: str
    event_id: str
    digest: bytes
    workload: str | None
    run: str | None
    body: str
    extra_ref: bytes | None


def row_hash(previous: bytes, row: JournalRow, postings: Sequence[Posting]) -> bytes:
    """Return the SHA-256 that seals a row and its postings after the previous row."""
    return seal(previous, row, microseconds(row.recorded_at), microseconds(row.effective_at), postings)


def seal(
    previous: bytes, row: JournalRow, recorded_us: int, effective_us: int, postings: Sequence[Posting]
) -> bytes:
    """Return the same, for who has the row's two instants as numbers already."""
    columns = (row.book, row.seq, recorded_us, effective_us, *row[4:], postings)
    return hashlib.sha256(previous + _encode(columns)).digest()


def microseconds(at: dt.datetime) -> int:
    """Return an instant as whole microseconds since the epoch."""
    return (at - EPOCH) // _MICROSECOND
