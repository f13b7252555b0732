"""Segments, waits, holds and handles made again from the journal, some workloads at a time.

However long the journal, memory is bounded. The client derives what follows from some workloads while the server does
something else that a rebuild needs: it adds up postings, looks the next workloads up, or takes in the rows before.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from gpuledger.database.engine import Reader, Writer
from gpuledger.database.meanwhile import Ahead, working
from gpuledger.kernel.collecting import without_collecting
from gpuledger.ledger import applied, handles, projections, queries, replay
from gpuledger.ledger.copying import copy_rows
from gpuledger.ledger.holds import Hold
from gpuledger.ledger.mapping import Rules
from gpuledger.ledger.segments import Segment
from gpuledger.ledger.waits import Wait

WORKLOADS_AT_ONCE = 5_000
"""How many workloads a part holds; two parts are in memory at once."""

_VERSIONED = ("book", "since_seq", "until_seq")

Mappings = Mapping[str, Sequence[tuple[int, Rules]]]
"""Book -> (sequence, what foreign names mean from that row on), in sequence."""


def parts(connection: Reader | Writer) -> Iterator[list[replay.WorkloadFacts]]:
    """Yield the facts of all workloads, some of them at a time."""
    workloads = replay.iter_workloads(connection)
    while some := list(islice(workloads, WORKLOADS_AT_ONCE)):
        yield some


def mappings_by_row(connection: Reader | Writer) -> Mappings:
    """Return what foreign names meant, by book and row of the journal."""
    taken_over = queries.policies_applied(connection)
    return {book: applied.rules_by_row(versions, book) for book, versions in taken_over.items()}


def rebuild(writer: Writer, *, meanwhile: Callable[[Writer], None]) -> None:
    """Make all that follows from workloads again; there is nothing of it before.

    Args:
        writer: A transaction of its own.
        meanwhile: Has the server do something that neither reads nor writes any of it; called once.
    """
    mappings = mappings_by_row(writer)
    with without_collecting():
        found = parts(writer)
        part = _Part(next(found, []), mappings)
        with working(writer, part.work):
            meanwhile(writer)
        while part.workloads:
            with working(writer, part.work):
                following = _Part(next(found, []), mappings)
            part.write(writer)
            part = following


class _Part:
    """Some workloads and what follows from them, of which some may be made before it is asked for.

    Args:
        workloads: Their facts.
        mappings: What foreign names meant.
    """

    def __init__(self, workloads: Sequence[replay.WorkloadFacts], mappings: Mappings) -> None:
        self.workloads = workloads
        self._mappings = mappings
        self._others: list[tuple[str, int, int | None, Wait | Hold]] = []
        self._segments = Ahead(self._segment_versions())

    def work(self) -> bool:
        """Derive what follows from one more workload or so; tell whether there may be more."""
        return self._segments.work()

    def write(self, writer: Writer) -> None:
        """Put all that follows beside what the server has; it takes in segments while the next ones are derived."""
        copy_rows(writer, "ledger.segments", (*_VERSIONED, *projections.SEGMENT_COLUMNS), self._segments)
        waits = [(*v, *projections.wait_row(w)) for *v, w in self._others if isinstance(w, Wait)]
        holds = [(*v, *projections.hold_row(h)) for *v, h in self._others if isinstance(h, Hold)]
        copy_rows(writer, "ledger.waits", (*_VERSIONED, *projections.WAIT_COLUMNS), waits)
        copy_rows(writer, "ledger.holds", (*_VERSIONED, *projections.HOLD_COLUMNS), holds)
        told = (
            (book, known.source, known.data)
            for book, _, facts in self.workloads
            for _, known in facts
            if type(known.data) in handles.TELL
        )
        handles.write(writer, handles.rows(told))

    def _segment_versions(self) -> Iterator[tuple[object, ...]]:
        """Yield the row of every version of every segment; put the versions of waits and holds aside."""
        for book, _, facts in self.workloads:
            for item, since, until in replay.history_versions(facts, self._mappings.get(book, ())):
                if isinstance(item, Segment):
                    yield (book, since, until, *projections.segment_row(item))
                else:
                    self._others.append((book, since, until, item))
