"""What could not be read: kept whole, with its place and a reason a person can act on (law 7)."""

import datetime as dt
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import sqlalchemy as sa
from psycopg.types.json import Jsonb

from gpuledger.database.engine import Reader, Writer, reading
from gpuledger.ledger import outbox
from gpuledger.ledger.copying import driver
from gpuledger.streams.topics import DEAD_LETTERS

IMPORT_STREAM = "import/"
"""Streams of imported files go on with ``SOURCE/CLUSTER``."""


class _Claim(msgspec.Struct):
    cluster: str | None = None


class _Claims(msgspec.Struct):
    """What even a faulty event may still say of itself."""

    data: _Claim


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One value that could not be read.

    Args:
        stream: The topic, or ``import/SOURCE/CLUSTER``; a path is never identity.
        partition: The partition; 0 for files.
        position: The offset, or the line number from 1.
        place: Where a person finds it.
        code: A short stable word for the kind of fault.
        reason: What was wrong.
        hint: What to do.
        raw: The bytes.
        context: What a retry needs besides the bytes.
    """

    stream: str
    partition: int
    position: int
    place: str
    code: str
    reason: str
    hint: str
    raw: bytes
    context: Mapping[str, Any] = field(default_factory=dict)

    def cluster(self) -> str | None:
        """Return the cluster that the value is known to be of, if any."""
        if self.stream.startswith(IMPORT_STREAM):
            return self.stream.removeprefix(IMPORT_STREAM).partition("/")[2]
        try:
            return msgspec.json.decode(self.raw, type=_Claims).data.cluster
        except msgspec.MsgspecError:
            return None


@dataclass(frozen=True, slots=True)
class Stored:
    """A dead letter as it waits in the table."""

    id: int
    received_at: dt.datetime
    letter: DeadLetter


@dataclass(frozen=True, slots=True)
class LettersQuery:
    """Which dead letters are asked for: those that nobody had resolved.

    Args:
        cluster: Only what is known to be of this cluster: an import into it, or an event that names it.
        from_at: Received from here on.
        to_at: Received before.
        as_of: What waited at this time; now unless given.
    """

    cluster: str | None = None
    from_at: dt.datetime | None = None
    to_at: dt.datetime | None = None
    as_of: dt.datetime | None = None


ALL_WAITING = LettersQuery()


def put(writer: Writer, letters: Sequence[DeadLetter], now: dt.datetime) -> int:
    """Store dead letters and queue them for their topic; return how many were new."""
    connection = driver(writer)
    new = 0
    for letter in letters:
        row = connection.execute(
            "INSERT INTO ledger.dead_letters (received_at, stream, partition, position, place, code, reason, hint,"
            " raw, raw_digest, context) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
            " ON CONFLICT (stream, partition, position, raw_digest) DO NOTHING RETURNING id",
            (
                now, letter.stream, letter.partition, letter.position, letter.place, letter.code, letter.reason,
                letter.hint, letter.raw, hashlib.sha256(letter.raw).digest(), Jsonb(dict(letter.context)),
            ),
        ).fetchone()  # fmt: skip
        if row is None:
            continue
        new += 1
        note = {
            "id": row[0],
            "place": letter.place,
            "code": letter.code,
            "reason": letter.reason,
            "hint": letter.hint,
        }
        outbox.enqueue(writer, DEAD_LETTERS, letter.stream, msgspec.json.encode(note))
    return new


def iter_waiting(engine: sa.Engine, query: LettersQuery = ALL_WAITING) -> Iterator[Stored]:
    """Yield every dead letter that is asked for, oldest first, a page at a time."""
    after = 0
    while True:
        with reading(engine) as reader:
            page = waiting(reader, query, after=after)
        if not page:
            return
        yield from (s for s in page if query.cluster is None or s.letter.cluster() == query.cluster)
        after = page[-1].id


def waiting(
    reader: Reader | Writer, query: LettersQuery = ALL_WAITING, *, after: int = 0, limit: int = 500
) -> list[Stored]:
    """Return the next dead letters behind an id, of whatever cluster, oldest first."""
    rows = driver(reader).execute(
        "SELECT id, received_at, stream, partition, position, place, code, reason, hint, raw, context"
        " FROM ledger.dead_letters WHERE id > %(after)s"
        " AND (resolved_at IS NULL OR resolved_at > %(as_of)s)"
        " AND (%(as_of)s::timestamptz IS NULL OR received_at <= %(as_of)s)"
        " AND (%(from_at)s::timestamptz IS NULL OR received_at >= %(from_at)s)"
        " AND (%(to_at)s::timestamptz IS NULL OR received_at < %(to_at)s) ORDER BY id LIMIT %(limit)s",
        {
            "after": after,
            "limit": limit,
            "as_of": query.as_of,
            "from_at": query.from_at,
            "to_at": query.to_at,
        },
    )
    return [
        Stored(
            id_, at, DeadLetter(stream, partition, position, place, code, reason, hint, bytes(raw), context)
        )
        for id_, at, stream, partition, position, place, code, reason, hint, raw, context in rows
    ]


def resolve(writer: Writer, ids: Sequence[int], now: dt.datetime) -> None:
    """Mark dead letters as read after all."""
    driver(writer).execute(
        "UPDATE ledger.dead_letters SET resolved_at = %s WHERE id = ANY(%s)", (now, list(ids))
    )
