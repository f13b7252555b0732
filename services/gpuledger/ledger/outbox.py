"""Messages that leave with what was booked: queued in the same transaction, published after it (DESIGN section 8)."""

import datetime as dt
from collections.abc import Sequence
from typing import NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.ledger.copying import driver
from gpuledger.streams.topics import Topic


class Queued(NamedTuple):
    """A message that waits to be published."""

    id: int
    topic: Topic
    key: str
    value: bytes


def enqueue(writer: Writer, topic: Topic, key: str, value: bytes) -> None:
    """Queue a message; it is published only if the transaction commits."""
    driver(writer).execute(
        "INSERT INTO ledger.outbox (topic, key, value) VALUES (%s, %s, %s)", (topic, key, value)
    )


def waiting(writer: Writer, limit: int) -> list[Queued]:
    """Return the oldest messages that wait; other publishers wait for them until the transaction ends."""
    rows = driver(writer).execute(
        "SELECT id, topic, key, value FROM ledger.outbox WHERE published_at IS NULL ORDER BY id LIMIT %s"
        " FOR UPDATE",
        (limit,),
    )
    return [Queued(id_, topic, key, bytes(value)) for id_, topic, key, value in rows.fetchall()]


def unpublished(reader: Reader) -> int:
    """Return how many messages are still to be published."""
    row = driver(reader).execute("SELECT count(*) FROM ledger.outbox WHERE published_at IS NULL").fetchone()
    return int(row[0]) if row else 0


def mark_published(writer: Writer, ids: Sequence[int], now: dt.datetime) -> None:
    """Say that messages are out."""
    driver(writer).execute("UPDATE ledger.outbox SET published_at = %s WHERE id = ANY(%s)", (now, list(ids)))
