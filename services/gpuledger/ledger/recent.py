"""What the books say now, kept as long as it is what they say: until one of them moves, and a second at most.

Everything that is read here follows from the rows of two books, the cluster's own and ``~org``, and from the second
of the question. The heads of both are read in the snapshot of each question, so that an answer that was kept is the
one that the snapshot would give: a chain's head stands for every row under it.
"""

import threading
import time
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import sqlalchemy as sa

from gpuledger.database.engine import Reader, looking_up, reading
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.ledger import queries
from gpuledger.ledger.copying import driver

Of = TypeVar("Of", bound=str | None)
"""A cluster; None for all of them."""

Kept = TypeVar("Kept")


class Heads(NamedTuple):
    """Where the books stand in a snapshot.

    Args:
        of: Book -> the digest of its newest row.
    """

    of: dict[str, bytes]

    def check(self, cluster: str | None) -> None:
        """Check that a cluster, when one is named, has a book.

        Raises:
            NotFound: When it has none.
        """
        if cluster is not None:
            queries.check_cluster(cluster, sorted(self.of.keys() - {ORG_BOOK}))

    def seen(self, cluster: str | None) -> tuple[bytes, ...]:
        """Return what all that is said of a cluster follows from; of every cluster unless given."""
        if cluster is None:
            return tuple(head for _, head in sorted(self.of.items()))
        return (self.of.get(cluster, b""), self.of.get(ORG_BOOK, b""))


def heads(reader: Reader) -> Heads:
    """Return where the books stand."""
    # In binary: a digest's text would be read by Python.
    rows = driver(reader).execute("SELECT book, head FROM ledger.books", binary=True)
    return Heads({book: bytes(head) for book, head in rows})


class _Kept(NamedTuple, Generic[Kept]):
    """What was read.

    Args:
        key: The second, and the heads of what it was read from.
        since_s: When its snapshot was asked for, by a clock that never goes back: it has all that was there by then.
    """

    key: tuple[object, ...]
    since_s: float
    value: Kept


class Recent(Generic[Of, Kept]):
    """Keeps what was read last of each cluster.

    Args:
        read: Reads it: a snapshot, the cluster or None for all, and the second, since the epoch.
    """

    def __init__(self, read: Callable[[Reader, Of, int], Kept]) -> None:
        self._read = read
        self._kept: dict[Of, _Kept[Kept]] = {}
        self._turns: dict[Of, threading.Lock] = {}
        self._turn = threading.Lock()

    def now(self, engine: sa.Engine, cluster: Of, now_s: Callable[[], int]) -> Kept | None:
        """Return what the books say; None where the cluster has no book.

        What was read already costs one statement. Of threads that ask at once one reads, and the others are given what
        it read if its snapshot is later than their question: however fast a book moves, nobody reads for nobody.

        Args:
            engine: The database.
            cluster: A cluster, or None for all.
            now_s: Returns the present, whole seconds since the epoch.
        """
        arrived_s = time.monotonic()
        with looking_up(engine) as reader:
            found = heads(reader)
        if cluster is not None and cluster not in found.of:
            return None
        known = self.find(found, cluster, now_s())
        if known is not None:
            return known
        with self._turn_of(cluster):
            kept = self._kept.get(cluster)
            if kept is not None and kept.since_s >= arrived_s:
                return kept.value
            since_s = time.monotonic()
            with reading(engine) as reader:
                found, at_s = heads(reader), now_s()
                known = self.find(found, cluster, at_s)
                if known is None:
                    known = self._read(reader, cluster, at_s)
                self._kept[cluster] = _Kept((at_s, *found.seen(cluster)), since_s, known)
        return known

    def within(self, reader: Reader, found: Heads, cluster: Of, now_s: int) -> Kept:
        """Return what a snapshot says, for who reads more of the same one.

        Args:
            reader: The snapshot.
            found: Its heads.
            cluster: A cluster that has a book, or None for all; no others are kept, so that there are few.
            now_s: The present, whole seconds since the epoch.
        """
        known = self.find(found, cluster, now_s)
        if known is None:
            known = self._read(reader, cluster, now_s)
            # Nobody's question is known to be earlier than a snapshot that was opened elsewhere.
            self._kept[cluster] = _Kept((now_s, *found.seen(cluster)), float("-inf"), known)
        return known

    def find(self, found: Heads, cluster: Of, now_s: int) -> Kept | None:
        """Return what a snapshot of these heads says if it was read already; arguments as ``within``."""
        kept = self._kept.get(cluster)
        return kept.value if kept is not None and kept.key == (now_s, *found.seen(cluster)) else None

    def _turn_of(self, cluster: Of) -> threading.Lock:
        with self._turn:
            return self._turns.setdefault(cluster, threading.Lock())
