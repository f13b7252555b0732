"""Every decision of recent cycles, in deflated pieces: the decision of one workload is read in a millisecond.

They are not history: what the policy decided follows from the journal, and a replay makes it again. So they are
kept for some hours only (docs/decisions/0035). What a piece says is the policy's affair; earlier releases kept every
sentence (docs/decisions/0042).
"""

import hashlib
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from gpuledger.database.engine import Reader, Writer
from gpuledger.kernel.clock import instant
from gpuledger.ledger.copying import copy_rows, driver

KEPT_S = 24 * 3600
"""How long decisions are kept; those of a cluster's newest cycle for as long as it is the newest."""

_LEVEL = 1
"""Three times as fast as the usual level, for a tenth more bytes."""

_COLUMNS = ("book", "seq", "n", "of", "decided_at", "decisions")

_WITH_SENTENCES = b"["
"""What pieces of earlier releases begin with: the journal's digest is that of the list of all decisions."""

_pairs = msgspec.json.Decoder(list[tuple[int, Any]])
_sorted = msgspec.json.Encoder(order="sorted").encode


def piece_of(workload: str, of: int) -> int:
    """Return in which of so many pieces the decisions of a workload lie, from 0."""
    return zlib.crc32(workload.encode()) % of


def pieces_of(workloads: Iterable[str], of: int) -> list[int]:
    """Return the same of many."""
    return [zlib.crc32(workload.encode()) % of for workload in workloads]


def keep(writer: Writer, book: str, seq: int, at_s: int, pieces: Sequence[bytes]) -> None:
    """Keep the decisions of a cycle.

    Args:
        writer: The transaction that records it.
        book: The cluster.
        seq: The cycle's row in the book.
        at_s: The instant that it decided for.
        pieces: All of them: those of a workload in the piece that ``piece_of`` says.
    """
    decided_at = instant(at_s)

    def rows() -> Iterator[tuple[object, ...]]:
        for n, piece in enumerate(pieces):
            yield book, seq, n, len(pieces), decided_at, zlib.compress(piece, _LEVEL)

    copy_rows(writer, "ledger.cycle_decisions", _COLUMNS, rows())


def forget(writer: Writer, book: str, before_s: int, newest_seq: int) -> None:
    """Forget the decisions of cycles that decided for instants before one, except for the newest cycle's."""
    driver(writer).execute(
        "DELETE FROM ledger.cycle_decisions WHERE book = %s AND decided_at < %s AND seq <> %s",
        (book, instant(before_s), newest_seq),
    )


def with_workload(reader: Reader, book: str, seq: int, workload: str) -> bytes | None:
    """Return the piece of a cycle with the decisions of a workload; None when it is kept no longer."""
    row = (
        driver(reader)
        .execute(
            "SELECT decisions FROM ledger.cycle_decisions"
            ' WHERE book = %s AND seq = %s AND n = %s::bigint %% "of"',
            (book, seq, zlib.crc32(workload.encode())),
        )
        .fetchone()
    )
    return None if row is None else zlib.decompress(row[0])


def every(connection: Reader | Writer, book: str, seq: int) -> list[bytes]:
    """Return the pieces of a cycle in their order; none when they are kept no longer."""
    rows = driver(connection).execute(
        "SELECT decisions FROM ledger.cycle_decisions WHERE book = %s AND seq = %s ORDER BY n", (book, seq)
    )
    return [zlib.decompress(piece) for (piece,) in rows.fetchall()]


def digest_of(pieces: Sequence[bytes]) -> str:
    """Return what stands in the journal for all decisions of a cycle: the hex SHA-256 of its pieces."""
    found = hashlib.sha256()
    for piece in pieces:
        found.update(piece)
    return found.hexdigest()


def digest(decisions: Sequence[Any]) -> str:
    """Return what stood there in earlier releases: the hex SHA-256 of their JSON, keys in order."""
    return hashlib.sha256(_sorted(decisions)).hexdigest()


def forged(connection: Reader | Writer) -> list[tuple[str, int]]:
    """Return (book, row) of which decisions are kept that the journal's digest does not stand for, or of no cycle."""
    kept = driver(connection).execute(
        """
        SELECT k.book, k.seq, j.body->>'decisions_digest', k.decided_at IS NOT DISTINCT FROM j.effective_at
        FROM (SELECT DISTINCT book, seq, decided_at FROM ledger.cycle_decisions) AS k
        LEFT JOIN ledger.journal AS j ON j.book = k.book AND j.seq = k.seq AND j.type = 'allocation.issued'
        ORDER BY 1, 2
        """
    )
    return [
        (book, seq)
        for book, seq, wanted, is_of_its_instant in kept.fetchall()
        if not is_of_its_instant or wanted != _digest_kept(connection, book, seq)
    ]


def drop(writer: Writer, book: str, seq: int) -> None:
    """Forget the decisions of a cycle: a replay makes them again."""
    driver(writer).execute("DELETE FROM ledger.cycle_decisions WHERE book = %s AND seq = %s", (book, seq))


def _digest_kept(connection: Reader | Writer, book: str, seq: int) -> str | None:
    try:
        pieces = every(connection, book, seq)
        if not all(piece.startswith(_WITH_SENTENCES) for piece in pieces):
            return digest_of(pieces)
        placed = [pair for piece in pieces for pair in _pairs.decode(piece)]
        return digest([decision for _, decision in sorted(placed, key=lambda pair: pair[0])])
    except (zlib.error, msgspec.MsgspecError):
        return None
