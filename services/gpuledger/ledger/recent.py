"""What the books say now, kept as long as it is what they say: until one of them moves, and a second at most.

Everything that is read here follows from the rows of two books, the cluster's own and ``~org``, and from the second
of the question. The heads of both are read in the snapshot of each question, so that an answer that was kept is the
one that the snapshot would give: a chain's head stands for every row under it.
"""

import threading
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


class Recent(Generic[Of, Kept]):
    """Keeps what was read last of each cluster; threads that ask for the same wait for the first of them.

    Args:
        read: Reads it: a snapshot, the cluster or None for all, and the second, since the epoch.
    """

    def __init__(self, read: Callable[[Reader, Of, int], Kept]) -> None:
        self._read = read
        self._kept: dict[Of, tuple[tuple[object, ...], Kept]] = {}
        self._turns: dict[Of, threading.Lock] = {}
        self._turn = threading.Lock()

    def now(self, engine: sa.Engine, cluster: Of, now_s: int) -> Kept | None:
        """Return what the books say; None where the cluster has no book.

        Args:
            engine: The database. What was read already costs one statement.
            cluster: A cluster, or None for all.
            now_s: The present, whole seconds since the epoch.
        """
        with looking_up(engine) as reader:
            found = heads(reader)
        if cluster is not None and cluster not in found.of:
            return None
        kept = self.find(found, cluster, now_s)
        if kept is None:
            with reading(engine) as reader:
                kept = self.get(reader, heads(reader), cluster, now_s)
        return kept

    def find(self, found: Heads, cluster: Of, now_s: int) -> Kept | None:
        """Return what a snapshot of these heads says if it was read already; arguments as ``get``."""
        kept = self._kept.get(cluster)
        return kept[1] if kept is not None and kept[0] == (now_s, *found.seen(cluster)) else None

    def get(self, reader: Reader, found: Heads, cluster: Of, now_s: int) -> Kept:
        """Return what the snapshot says.

        Args:
            reader: A snapshot.
            found: Its heads.
            cluster: A cluster that has a book, or None for all; no others are kept, so that there are few.
            now_s: The present, whole seconds since the epoch.
        """
        with self._turn_of(cluster):
            kept = self.find(found, cluster, now_s)
            if kept is None:
                kept = self._read(reader, cluster, now_s)
                self._kept[cluster] = ((now_s, *found.seen(cluster)), kept)
        return kept

    def _turn_of(self, cluster: Of) -> threading.Lock:
        with self._turn:
            return self._turns.setdefault(cluster, threading.Lock())
