"""What could not be read: kept whole, with its place and a reason a person can act on (law 7)."""

import datetime as dt
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, LiteralString, NamedTuple

import msgspec
import sqlalchemy as sa
from psycopg.types.json import Jsonb

from gpuledger.database.engine import Reader, Writer, reading
from gpuledger.kernel.errors import Conflict, NotFound
from gpuledger.ledger import outbox
from gpuledger.ledger.copying import driver
from gpuledger.streams.topics import DEAD_LETTERS

IMPORT_STREAM = "import/"
"""Streams of imported files go on with ``SOURCE/CLUSTER``."""

REASON_MAX = 2000
"""A reason may quote what it is about, and that may be of any length."""

PAGE = 500


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
        code: What kind of fault it is, one of ``kernel.reasons``.
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
            claimed = msgspec.json.decode(self.raw, type=_Claims).data.cluster
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        return None if claimed is None or "\0" in claimed else claimed


class State(StrEnum):
    """What became of a dead letter."""

    WAITING = "waiting"
    RESOLVED = "resolved"
    """A retry read it after all, and booked what it says."""
    DISCARDED = "discarded"
    """Somebody decided that nobody needs it."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A dead letter as it stands in the table."""

    id: int
    received_at: dt.datetime
    letter: DeadLetter


class Entry(NamedTuple):
    """What a list says of a dead letter; its bytes may be many and are left where they are.

    Args:
        bytes: How many bytes the value has.
        ended_at: When it was resolved or discarded; None while it waits.
    """

    id: int
    received_at: dt.datetime
    stream: str
    partition: int
    position: int
    cluster: str | None
    place: str
    code: str
    reason: str
    hint: str
    bytes: int
    state: State
    ended_at: dt.datetime | None


@dataclass(frozen=True, slots=True)
class LettersQuery:
    """Which dead letters are asked for.

    Args:
        cluster: Only what is known to be of this cluster: an import into it, or an event that names it.
        from_at: Received from here on.
        to_at: Received before.
        as_of: What was so at this time; now unless given.
        code: Only faults of this kind.
        stream: Only what came by this topic, or with this import (``import/SOURCE/CLUSTER``).
        state: What had become of it; None for whatever.
        ids: Only these.
    """

    cluster: str | None = None
    from_at: dt.datetime | None = None
    to_at: dt.datetime | None = None
    as_of: dt.datetime | None = None
    code: str | None = None
    stream: str | None = None
    state: State | None = State.WAITING
    ids: Sequence[int] | None = None

    def where(self) -> LiteralString:
        """Return the condition; its parameters are this query's own fields."""
        conditions: list[LiteralString] = ["true"]
        if self.cluster is not None:
            conditions.append("cluster = %(cluster)s")
        if self.code is not None:
            conditions.append("code = %(code)s")
        if self.stream is not None:
            conditions.append("stream = %(stream)s")
        if self.ids is not None:
            conditions.append("id = ANY(%(ids)s)")
        if self.from_at is not None:
            conditions.append("received_at >= %(from_at)s")
        if self.to_at is not None:
            conditions.append("received_at < %(to_at)s")
        if self.as_of is not None:
            conditions.append("received_at <= %(as_of)s")
        return " AND ".join([*conditions, *self._ended()])

    def _ended(self) -> list[LiteralString]:
        if self.state is None:
            return []
        ends: dict[State, LiteralString] = {State.RESOLVED: "resolved_at", State.DISCARDED: "discarded_at"}
        if self.state is not State.WAITING:
            end = ends[self.state]
            return [f"{end} <= %(as_of)s" if self.as_of is not None else f"{end} IS NOT NULL"]
        if self.as_of is None:
            return [f"{end} IS NULL" for end in ends.values()]
        return [f"({end} IS NULL OR {end} > %(as_of)s)" for end in ends.values()]


ALL_WAITING = LettersQuery()


def put(writer: Writer, letters: Sequence[DeadLetter], now: dt.datetime) -> int:
    """Store dead letters and queue them for their topic; return how many were new."""
    connection = driver(writer)
    new = 0
    for letter in letters:
        reason = letter.reason[:REASON_MAX]
        row = connection.execute(
            "INSERT INTO ledger.dead_letters (received_at, stream, partition, position, place, code, reason, hint,"
            " raw, raw_digest, context, cluster) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
            " ON CONFLICT (stream, partition, position, raw_digest) DO NOTHING RETURNING id",
            (
                now, letter.stream, letter.partition, letter.position, letter.place, letter.code, reason,
                letter.hint, letter.raw, hashlib.sha256(letter.raw).digest(), Jsonb(dict(letter.context)),
                letter.cluster(),
            ),
        ).fetchone()  # fmt: skip
        if row is None:
            continue
        new += 1
        note = {
            "id": row[0],
            "stream": letter.stream,
            "partition": letter.partition,
            "position": letter.position,
            "place": letter.place,
            "code": letter.code,
            "reason": reason,
            "hint": letter.hint,
        }
        outbox.enqueue(writer, DEAD_LETTERS, letter.stream, msgspec.json.encode(note))
    return new


def list_entries(
    reader: Reader | Writer, query: LettersQuery = ALL_WAITING, *, after: int = 0, limit: int | None = None
) -> list[Entry]:
    """Return the next dead letters behind an id, oldest first, without their bytes; all unless limited."""
    rows = driver(reader).execute(
        "SELECT id, received_at, stream, partition, position, cluster, place, code, reason, hint, octet_length(raw),"
        " CASE WHEN resolved_at IS NOT NULL THEN 'resolved' WHEN discarded_at IS NOT NULL THEN 'discarded'"
        " ELSE 'waiting' END, coalesce(resolved_at, discarded_at)"
        " FROM ledger.dead_letters WHERE "
        + query.where()
        + " AND id > %(after)s ORDER BY id LIMIT %(limit)s",
        _parameters(query, after, limit),
    )
    return [Entry._make((*told, State(state), ended_at)) for *told, state, ended_at in rows]


def iter_entries(engine: sa.Engine, query: LettersQuery = ALL_WAITING) -> Iterator[Entry]:
    """Yield every dead letter that is asked for, oldest first, a page at a time."""
    after = 0
    while True:
        with reading(engine) as reader:
            page = list_entries(reader, query, after=after, limit=PAGE)
        if not page:
            return
        yield from page
        after = page[-1].id


def get_entry(reader: Reader | Writer, id_: int) -> Entry:
    """Return what a list says of one dead letter.

    Raises:
        NotFound: When there is none of that number.
    """
    found = list_entries(reader, LettersQuery(state=None, ids=[id_]))
    if not found:
        raise NotFound(
            f"there is no dead letter {id_}", hint="gpuledger dlq list --state all shows their numbers"
        )
    return found[0]


def waiting(
    reader: Reader | Writer, query: LettersQuery = ALL_WAITING, *, after: int = 0, limit: int = PAGE
) -> list[Stored]:
    """Return the next dead letters behind an id, oldest first, with their bytes."""
    rows = driver(reader).execute(
        "SELECT id, received_at, stream, partition, position, place, code, reason, hint, raw, context"
        " FROM ledger.dead_letters WHERE "
        + query.where()
        + " AND id > %(after)s ORDER BY id LIMIT %(limit)s",
        _parameters(query, after, limit),
    )
    return [
        Stored(
            id_, at, DeadLetter(stream, partition, position, place, code, reason, hint, bytes(raw), context)
        )
        for id_, at, stream, partition, position, place, code, reason, hint, raw, context in rows
    ]


def waiting_by_code(reader: Reader) -> dict[str, int]:
    """Return reason -> how many dead letters wait for a person; reasons without any are absent."""
    rows = driver(reader).execute(
        "SELECT code, count(*) FROM ledger.dead_letters WHERE resolved_at IS NULL AND discarded_at IS NULL"
        " GROUP BY code"
    )
    return dict(rows.fetchall())


def resolve(writer: Writer, ids: Sequence[int], now: dt.datetime) -> None:
    """Mark dead letters as read after all, in the transaction that books what they say.

    Raises:
        Conflict: When one of them no longer waits; the transaction must not go on.
    """
    done = driver(writer).execute(
        "UPDATE ledger.dead_letters SET resolved_at = %s"
        " WHERE id = ANY(%s) AND resolved_at IS NULL AND discarded_at IS NULL",
        (now, list(ids)),
    )
    if done.rowcount != len(ids):
        raise Conflict("a dead letter was read or discarded by somebody else meanwhile", hint="try again")


def _parameters(query: LettersQuery, after: int, limit: int | None) -> dict[str, Any]:
    fields = {name: getattr(query, name) for name in LettersQuery.__slots__}
    return fields | {"after": after, "limit": limit}
