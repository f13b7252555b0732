"""Where each consumer stands, and which worker may move it.

A worker claims a partition by raising its epoch; a transaction of an older epoch finds that out
under the row lock and writes nothing (law 2).
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuledger.database.engine import Reader, Writer
from gpuledger.ingest.continuity import Stood
from gpuledger.kernel.errors import Fenced
from gpuledger.ledger.copying import driver


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker's right to a partition: the epoch it raised and the next position to read."""

    consumer: str
    stream: str
    partition: int
    epoch: int
    position: int


def claim(writer: Writer, consumer: str, stream: str, partitions: Sequence[int]) -> list[Claim]:
    """Take over partitions; workers that held them before are fenced from now on."""
    claims = []
    for partition in sorted(partitions):
        row = (
            driver(writer)
            .execute(
                "INSERT INTO ledger.stream_offsets (consumer, stream, partition, position, epoch)"
                " VALUES (%s, %s, %s, 0, 1) ON CONFLICT (consumer, stream, partition)"
                " DO UPDATE SET epoch = stream_offsets.epoch + 1 RETURNING epoch, position",
                (consumer, stream, partition),
            )
            .fetchone()
        )
        assert row is not None  # noqa: S101 - RETURNING after an upsert
        claims.append(Claim(consumer, stream, partition, row[0], row[1]))
    return claims


def advance(
    writer: Writer, held: Claim, position: int | None, published_at: dt.datetime | None = None
) -> None:
    """Check the claim under the row lock, and move the position when one is given.

    Args:
        writer: The transaction.
        held: The claim.
        position: The next position to read.
        published_at: When the newest record before it had been published, where the broker says so.

    Raises:
        Fenced: When another worker raised the epoch since.
    """
    row = (
        driver(writer)
        .execute(
            "SELECT epoch FROM ledger.stream_offsets WHERE consumer = %s AND stream = %s AND partition = %s"
            " FOR UPDATE",
            (held.consumer, held.stream, held.partition),
        )
        .fetchone()
    )
    if row is None or row[0] != held.epoch:
        raise Fenced(
            f"{held.stream}[{held.partition}] was taken over by another worker of {held.consumer!r}",
            hint="nothing was written; stop this worker, or start it again to take over",
        )
    if position is not None:
        driver(writer).execute(
            "UPDATE ledger.stream_offsets SET position = %s, published_at = coalesce(%s, published_at)"
            " WHERE consumer = %s AND stream = %s AND partition = %s",
            (position, published_at, held.consumer, held.stream, held.partition),
        )


def note_end(writer: Writer, held: Claim, end: int, at: dt.datetime) -> None:
    """Keep where the stream ends, so that what waits can be told without asking the broker.

    Args:
        writer: The transaction that checked the claim.
        held: The claim.
        end: The position after the newest record.
        at: When the worker looked.
    """
    driver(writer).execute(
        "UPDATE ledger.stream_offsets SET end_position = %s, seen_at = %s"
        " WHERE consumer = %s AND stream = %s AND partition = %s",
        (end, at, held.consumer, held.stream, held.partition),
    )


def positions(reader: Reader, consumer: str, stream: str) -> Mapping[int, int]:
    """Return the next position to read of each partition the consumer has begun."""
    rows = driver(reader).execute(
        "SELECT partition, position FROM ledger.stream_offsets WHERE consumer = %s AND stream = %s",
        (consumer, stream),
    )
    return dict(rows.fetchall())


def stood(reader: Reader, consumer: str, stream: str) -> Mapping[int, Stood]:
    """Return where the consumer stands in each partition that it has begun, and of when what it read last is."""
    rows = driver(reader).execute(
        "SELECT partition, position, published_at FROM ledger.stream_offsets WHERE consumer = %s AND stream = %s",
        (consumer, stream),
    )
    return {partition: Stood(position, published_at) for partition, position, published_at in rows.fetchall()}
