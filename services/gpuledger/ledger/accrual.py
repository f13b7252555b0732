"""What a tick adds: the time of open runs since the tick before it, and no more is read than stands open.

An open run is charged up to the newest tick of its book, always: whatever changes a workload restates it up to there.
So a tick need not restate anything - what stands stays, and what lies between the two ticks is added by the same rules.
It corrects nothing, and carries no reason.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from msgspec.structs import replace

from gpuledger.database.engine import Writer
from gpuledger.kernel.clock import instant, seconds
from gpuledger.ledger import charges, projections
from gpuledger.ledger.charges import Booking, Posting
from gpuledger.ledger.copying import driver
from gpuledger.ledger.rates import Rates
from gpuledger.ledger.segments import Segment

Windows = Mapping[tuple[str, str], Sequence[tuple[int, int]]]
"""(workload, run) -> the windows of time that are paid from a hold."""


class Span(NamedTuple):
    """From the tick before, None for the first, to the tick."""

    before_s: int | None
    at_s: int


def accrued(
    segments: Iterable[Segment], windows: Windows, span: Span, booking: Booking, card: Rates
) -> list[Posting]:
    """Return what open segments add between two ticks, by workload.

    Args:
        segments: Open ones, by workload.
        windows: What their runs drain.
        span: The time between the ticks.
        booking: Where it is booked.
        card: What each model weighs.
    """
    postings: list[Posting] = []
    for workload, own in groupby(segments, key=lambda segment: segment.workload):
        amounts: dict[charges.Key, int] = {}
        for segment in own:
            from_s = segment.from_s if span.before_s is None else max(segment.from_s, span.before_s)
            to_s = segment.until_s(span.at_s)
            if from_s < to_s:
                drained = windows.get((workload, segment.run), ())
                charges.charge(
                    amounts, replace(segment, from_s=from_s), to_s, drained, booking.calendar, card
                )
        postings += charges.difference(amounts, {}, workload=workload, reason="", booking=booking)
    return postings


def accrue(
    writer: Writer, book: str, span: Span, booking: Booking, card: Rates, *, besides: Collection[str]
) -> list[Posting]:
    """Return what a tick adds to a book.

    Args:
        writer: The transaction that holds the book's lock.
        book: The book.
        span: The time since the tick before.
        booking: Where it is booked.
        card: What each model weighs.
        besides: Workloads that are restated otherwise.
    """
    values = {
        "book": book,
        "at": instant(span.at_s),
        "before": None if span.before_s is None else instant(span.before_s),
        "besides": list(besides),
    }
    windows: dict[tuple[str, str], list[tuple[int, int]]] = {}
    rows = driver(writer).execute(
        "SELECT workload, run, from_at, to_at FROM ledger.holds WHERE book = %(book)s AND until_seq IS NULL"
        " AND run IS NOT NULL AND to_at > coalesce(%(before)s, '-infinity'::timestamptz)",
        values,
    )
    for workload, run, from_at, to_at in rows:
        windows.setdefault((workload, run), []).append((seconds(from_at), seconds(to_at)))
    rows = driver(writer).execute(
        f"SELECT {', '.join(projections.SEGMENT_COLUMNS)} FROM ledger.segments"
        " WHERE book = %(book)s AND until_seq IS NULL AND to_at IS NULL AND from_at < %(at)s"
        " AND (capped_at IS NULL OR capped_at > coalesce(%(before)s, '-infinity'::timestamptz))"
        # The order of rows is part of the seal's work, not of what it says: any collation will do.
        " AND workload <> ALL(%(besides)s) ORDER BY workload, run, from_at",
        values,
    )
    return accrued((projections.segment_of(row) for row in rows), windows, span, booking, card)
