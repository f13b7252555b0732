"""Every decision of recent cycles, in deflated pieces: the decision of one workload is read in a millisecond.

They are not history: what the policy decided follows from the journal, and a replay makes it again. So they are
kept for some hours only (docs/decisions/0035).
"""

import hashlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from gpuledger.database.engine import Reader, Writer
from gpuledger.kernel.clock import instant
from gpuledger.ledger.copying import copy_rows, driver

PIECE = 256
"""How many decisions lie in a piece, about."""

KEPT_S = 24 * 3600
"""How long decisions are kept; those of a cluster's newest cycle for as long as it is the newest."""

_LEVEL = 1
"""Three times as fast as the usual level, for a tenth more bytes."""

_COLUMNS = ("book", "seq", "n", "of", "decided_at", "decisions")

_pairs = msgspec.json.Decoder(list[tuple[int, dict[str, Any]]])
_encode = msgspec.json.Encoder().encode
_sorted = msgspec.json.Encoder(order="sorted").encode


class Said(NamedTuple):
    """A decision as it is kept.

    Args:
        workload: Of which workload.
        json: It, under the published keys.
    """

    workload: str
    json: bytes

    @classmethod
    def of(cls, decision: Mapping[str, Any]) -> "Said":
        """Write a decision down."""
        return cls(decision["workload"], _encode(decision))


def keep(writer: Writer, book: str, seq: int, at_s: int, decisions: Sequence[Said]) -> None:
    """Keep the decisions of a cycle.

    Args:
        writer: The transaction that records it.
        book: The cluster.
        seq: The cycle's row in the book.
        at_s: The instant that it decided for.
        decisions: All of them in their order.
    """
    pieces: list[list[bytes]] = [[] for _ in range(-(-len(decisions) // PIECE) or 1)]
    for place, (workload, json) in enumerate(decisions):
        pieces[_crc(workload) % len(pieces)].append(b"[%d,%b]" % (place, json))
    decided_at = instant(at_s)

    def rows() -> Iterator[tuple[object, ...]]:
        for n, piece in enumerate(pieces):
            yield book, seq, n, len(pieces), decided_at, zlib.compress(b"[%b]" % b",".join(piece), _LEVEL)

    copy_rows(writer, "ledger.cycle_decisions", _COLUMNS, rows())


def forget(writer: Writer, book: str, before_s: int, newest_seq: int) -> None:
    """Forget the decisions of cycles that decided for instants before one, except for the newest cycle's."""
    driver(writer).execute(
        "DELETE FROM ledger.cycle_decisions WHERE book = %s AND decided_at < %s AND seq <> %s",
        (book, instant(before_s), newest_seq),
    )


def of_workload(reader: Reader, book: str, seq: int, workload: str) -> list[dict[str, Any]] | None:
    """Return what a cycle decided for a workload and its runs, in order; None when it is kept no longer."""
    row = (
        driver(reader)
        .execute(
            "SELECT decisions FROM ledger.cycle_decisions"
            ' WHERE book = %s AND seq = %s AND n = %s::bigint %% "of"',
            (book, seq, _crc(workload)),
        )
        .fetchone()
    )
    if row is None:
        return None
    return [
        decision for _, decision in _pairs.decode(zlib.decompress(row[0])) if decision["workload"] == workload
    ]


def every(connection: Reader | Writer, book: str, seq: int) -> list[dict[str, Any]] | None:
    """Return all that a cycle decided, in its order; None when it is kept no longer."""
    rows = (
        driver(connection)
        .execute("SELECT decisions FROM ledger.cycle_decisions WHERE book = %s AND seq = %s", (book, seq))
        .fetchall()
    )
    if not rows:
        return None
    pairs = [pair for (piece,) in rows for pair in _pairs.decode(zlib.decompress(piece))]
    return [decision for _, decision in sorted(pairs, key=lambda pair: pair[0])]


class Digest:
    """What stands in the journal for all decisions of a cycle: the hex SHA-256 of their JSON, keys in order."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256(b"[")
        self._between = b""

    def add(self, decisions: list[Any]) -> None:
        """Go on with the next of them, at least one."""
        self._hash.update(self._between + _sorted(decisions)[1:-1])
        self._between = b","

    def hex(self) -> str:
        """Return it when all are told."""
        whole = self._hash.copy()
        whole.update(b"]")
        return whole.hexdigest()


def digest(decisions: list[Any]) -> str:
    """Return the digest of all decisions of a cycle."""
    found = Digest()
    if decisions:
        found.add(decisions)
    return found.hex()


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
        return digest(every(connection, book, seq) or [])
    except (zlib.error, msgspec.MsgspecError):
        return None


def _crc(workload: str) -> int:
    return zlib.crc32(workload.encode())
