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
from gpuledger.ledger.copying import driver
from gpuledger.streams.topics import DEAD_LETTERS


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One value that could not be read.

    Args:
        stream: The topic, or ``import/SOURCE``; a path is never identity.
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


@dataclass(frozen=True, slots=True)
class Stored:
    """A dead letter as it waits in the table."""

    id: int
    received_at: dt.datetime
    letter: DeadLetter


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
        connection.execute(
            "INSERT INTO ledger.outbox (topic, key, value) VALUES (%s, %s, %s)",
            (DEAD_LETTERS, letter.stream, msgspec.json.encode(note)),
        )
    return new


def iter_waiting(engine: sa.Engine) -> Iterator[Stored]:
    """Yield every dead letter that nobody has resolved, oldest first, a page at a time."""
    after = 0
    while True:
        with reading(engine) as reader:
            page = waiting(reader, after=after)
        if not page:
            return
        yield from page
        after = page[-1].id


def waiting(reader: Reader | Writer, *, after: int = 0, limit: int = 500) -> list[Stored]:
    """Return the next dead letters behind an id that nobody has resolved, oldest first."""
    rows = driver(reader).execute(
        "SELECT id, received_at, stream, partition, position, place, code, reason, hint, raw, context"
        " FROM ledger.dead_letters WHERE resolved_at IS NULL AND id > %s ORDER BY id LIMIT %s",
        (after, limit),
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
