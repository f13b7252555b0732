"""Lots that have lapsed although no tick has said so yet: what the next tick would post for that, read ahead.

A balance never waits for a tick. What the time since the last one adds is in ``remainder``; what follows from it for
lots - the rest of one that is gone since, what a hold that lapsed gives back to a closed period - is the arithmetic of
``settlement`` as it would be made now, less what is posted. So is what a tick would take back of what was posted back
of adjustments, which is ``overtaken``.
"""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger import overtaken, queries, settled, settlement
from gpuledger.ledger.charges import (
    CHARGE,
    CREDIT,
    EXPIRY,
    GRANT,
    ROLLOVER,
    UNALLOCATED,
    Booking,
    Posting,
)
from gpuledger.ledger.remainder import Dated, Remainder, by_period, open_time
from gpuledger.ledger.settled import Touched

Place = tuple[str, str, str]
"""Book, account, period."""


class _Books(NamedTuple):
    """Book -> where its clock stands, and which of its periods are shut; absent where nothing is."""

    ticks: Mapping[str, int]
    bookings: Mapping[str, Booking]


class Ahead:
    """What a tick of this instant would add to balances.

    Args:
        reader: A snapshot.
        cluster: One cluster, or all.
        now_s: The instant, seconds since the epoch.
        as_of: Recorded time: what the book said then; now unless given.
        calendar: The organisation's days.
        as_known: Into the period that it belongs to, shut or not; else into the one that it would be booked into.

    Attributes:
        used: What runs that go on, and holds that lapse, add.
        expired: What leaves a budget because its lot is gone; weighted.
        rolled: What enters a budget from the period before, beyond what has; weighted.
        granted: What minima add to that.
        back: Code -> what is posted back of overtaken adjustments by then, beyond what is; weighted.
    """

    def __init__(
        self,
        reader: Reader | Writer,
        cluster: str | None,
        now_s: int,
        as_of: queries.AsOf,
        calendar: Calendar,
        *,
        as_known: bool = False,
    ) -> None:
        ticks = queries.ticks(reader, as_of)
        by_day = open_time(reader, cluster, now_s, as_of, calendar, ticks=ticks)
        shut = queries.shut_periods(reader, as_of)
        bookings = {book: Booking(calendar, periods) for book, periods in shut.items()}
        self.used = by_period(by_day, {} if as_known else bookings, calendar)
        self.expired: dict[Place, int] = {}
        self.rolled: dict[Place, int] = {}
        self.granted: dict[Place, int] = {}
        self.back: dict[str, dict[Place, int]] = {code: {} for code in overtaken.CODES}
        targets = {
            (CHARGE, "spent"): self.back[CHARGE],
            (CREDIT, "credited"): self.back[CREDIT],
            (UNALLOCATED, "unallocated"): self.back[UNALLOCATED],
            (EXPIRY, "expired"): self.expired,
            (ROLLOVER, "budget"): self.rolled,
            (GRANT, "budget"): self.granted,
        }
        postings = _postings(reader, cluster, now_s, as_of, calendar, _Books(ticks, bookings), by_day)
        for book, posting in postings:
            for leg, amount in ((posting.debit, -posting.amount), (posting.credit, posting.amount)):
                into = targets.get((posting.code, leg.pot))
                if into is None:
                    continue
                # What rolls over belongs to the period after that of its day.
                day = posting.day + dt.timedelta(days=posting.code == ROLLOVER)
                place = (book, leg.account, calendar.period_of(day) if as_known else leg.period)
                into[place] = into.get(place, 0) + amount


def _postings(
    reader: Reader | Writer,
    cluster: str | None,
    now_s: int,
    as_of: queries.AsOf,
    calendar: Calendar,
    books: _Books,
    by_day: Mapping[Dated, Remainder],
) -> Iterator[tuple[str, Posting]]:
    """Yield (book, posting): the expiry and rollover that a tick would post, and what it would post back."""
    vector = None if as_of is None else queries.sequences(reader, as_of)
    for book in [cluster] if cluster else queries.clusters(reader):
        before_s = books.ticks.get(book)
        seq = None if vector is None else vector.get(book, 0)
        booking = books.bookings.get(book, Booking(calendar))
        back = overtaken.ahead(reader, book, booking, _used(by_day, book, calendar), seq)
        yield from ((book, posting) for posting in back)
        further = _further(by_day, back, book, calendar)
        if before_s is not None and not further and calendar.day_of(before_s) >= calendar.day_of(now_s):
            continue
        extent = settled.read(
            reader,
            book,
            calendar,
            now_s if before_s is None else max(now_s, before_s),
            before_s=before_s,
            accounts={touched.account for touched in further},
            as_of_seq=seq,
        )
        for posting in settlement.unposted(reader, extent, booking, further):
            yield book, posting


def _used(by_day: Mapping[Dated, Remainder], book: str, calendar: Calendar) -> dict[Touched, dict[str, int]]:
    """Return account and period -> code -> what open runs add to it since the last tick."""
    found: dict[Touched, dict[str, int]] = {}
    for (name, account, day), rest in by_day.items():
        for code, amount in ((CHARGE, rest.charged), (UNALLOCATED, rest.unallocated)):
            if name == book and amount:
                own = found.setdefault(Touched(account, calendar.period_of(day)), {})
                own[code] = own.get(code, 0) + amount
    return found


def _further(
    by_day: Mapping[Dated, Remainder], back: Sequence[Posting], book: str, calendar: Calendar
) -> dict[Touched, dict[dt.date, int]]:
    """Return account and period -> day -> what was taken from it since the last tick; below zero it came back."""
    taken = {
        (account, day): rest.charged + rest.held
        for (name, account, day), rest in by_day.items()
        if name == book
    }
    for posting in back:
        for leg, amount in ((posting.debit, posting.amount), (posting.credit, -posting.amount)):
            if leg.pot == "budget":
                taken[leg.account, posting.day] = taken.get((leg.account, posting.day), 0) + amount
    found: dict[Touched, dict[dt.date, int]] = {}
    for (account, day), amount in taken.items():
        if amount:
            found.setdefault(Touched(account, calendar.period_of(day)), {})[day] = amount
    return found
