"""Adjustments that facts have overtaken: what takes back more than stands is posted back, so that no net is negative.

An adjustment is held against what stands when it is ordered. Facts that come later may leave less than it took back:
a run ended earlier than was known, or was another account's. Of an account and a period, charges then count as 0, and
credits as no more than what is charged. What is posted back follows from what stands, as all else does: it goes again
when facts leave room for the adjustment, whatever their order.
"""

import datetime as dt
from collections.abc import Collection, Mapping
from typing import NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.kernel.accounts import owner_of
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import seconds
from gpuledger.ledger import days, orders
from gpuledger.ledger.charges import (
    CHARGE,
    CREDIT,
    SETTLED,
    UNALLOCATED,
    WEIGHTED,
    Booking,
    Moved,
    Posting,
    corrections,
)
from gpuledger.ledger.copying import driver
from gpuledger.ledger.days import Sums
from gpuledger.ledger.settled import Touched

CODES = (CHARGE, CREDIT, UNALLOCATED)
"""What adjustments correct and facts move."""


class Back(NamedTuple):
    """What is posted back, or stands so: under a code, on a day."""

    code: str
    day: dt.date


_NOTHING: Mapping[Touched, Mapping[str, int]] = {}


class Adjusted(NamedTuple):
    """What is known of the adjustments of an account and period: the day of the newest, and the row of the first."""

    day: dt.date
    since_seq: int


def due(writer: Writer, book: str, booking: Booking, by_batch: Moved) -> list[Posting]:
    """Return what is to be posted back, or taken back of that, after a batch that moved this.

    Args:
        writer: The transaction, the batch written.
        book: The book, locked.
        booking: Which periods are shut now.
        by_batch: What the postings of the batch moved.
    """
    adjusted = _adjusted(writer, book, booking.calendar)
    if not adjusted:
        return []
    calendar = booking.calendar
    changed = {Touched(account, calendar.period_of(day)) for account, day in days.sums(by_batch)}
    moved = {of: known for of, known in adjusted.items() if of in changed}
    if not moved:
        return []
    return _postings(
        booking, moved, _stood(writer, book, calendar, moved), _back(writer, book, calendar, moved)
    )


def wanted(reader: Reader, book: str, booking: Booking) -> list[Posting]:
    """Return all that must have been posted back, worked out anew."""
    adjusted = _adjusted(reader, book, booking.calendar)
    return _postings(booking, adjusted, _stood(reader, book, booking.calendar, adjusted, anew=True), {})


def ahead(
    reader: Reader | Writer,
    book: str,
    booking: Booking,
    further: Mapping[Touched, Mapping[str, int]],
    as_of_seq: int | None = None,
) -> list[Posting]:
    """Return what a tick would post back, or take back of that, and write nothing.

    A tick only adds: where nothing is posted back yet, nothing will be, and nothing needs to be read.

    Args:
        reader: A snapshot.
        book: The book.
        booking: Which periods are shut.
        further: Account and period -> code -> what the tick would post.
        as_of_seq: The newest row that is known of; all unless given.
    """
    if not further:
        return []
    calendar = booking.calendar
    adjusted = _adjusted(reader, book, calendar, as_of_seq)
    moved = {of: known for of, known in adjusted.items() if of in further}
    have = _back(reader, book, calendar, moved, as_of_seq)
    if not have:
        return []
    stood = _stood(reader, book, calendar, moved, as_of_seq)
    return _postings(booking, moved, stood, have, further)


def posted_back(standing: Mapping[str, int]) -> dict[str, int]:
    """Return code -> what must be added to what stands under it without this; what needs nothing is absent. Pure."""
    charged, credited, unallocated = (standing.get(code, 0) for code in CODES)
    back = {
        CHARGE: max(0, -charged),
        CREDIT: min(max(0, credited), max(0, charged)) - credited,
        UNALLOCATED: max(0, -unallocated),
    }
    return {code: amount for code, amount in back.items() if amount}


def _postings(
    booking: Booking,
    adjusted: Mapping[Touched, Adjusted],
    stood: Mapping[Touched, Sums],
    have: Mapping[Touched, Mapping[Back, int]],
    further: Mapping[Touched, Mapping[str, int]] = _NOTHING,
) -> list[Posting]:
    """Return the difference between what must be posted back and what is."""
    found = []
    for of, (day, _) in sorted(adjusted.items()):
        more = further.get(of, {})
        sums = {code: amount + more.get(code, 0) for code, amount in zip(CODES, stood[of][1:], strict=True)}
        want = {Back(code, day): amount for code, amount in posted_back(sums).items()}
        stands = have.get(of, {})
        for back in sorted(want.keys() | stands.keys()):
            if amount := want.get(back, 0) - stands.get(back, 0):
                found += corrections(back.code, of.account, amount, back.day, booking, None, SETTLED)
    return found


def _stood(
    connection: Reader | Writer,
    book: str,
    calendar: Calendar,
    asked: Collection[Touched],
    as_of_seq: int | None = None,
    *,
    anew: bool = False,
) -> dict[Touched, Sums]:
    """Return what stands of accounts in periods, without what was posted back."""
    found = dict.fromkeys(asked, Sums())
    if not asked:
        return found
    accounts, span = {of.account for of in asked}, _days_of(asked, calendar)
    if anew or as_of_seq is not None:
        by_day = days.read_anew(connection, book, accounts, *span, as_of_seq=as_of_seq)
    else:
        by_day = days.read(connection, book, accounts, *span)
    for (account, day), sums in by_day.items():
        of = Touched(account, calendar.period_of(day))
        if of in found:
            found[of] = found[of].plus(sums)
    return found


def _back(
    connection: Reader | Writer,
    book: str,
    calendar: Calendar,
    asked: Mapping[Touched, Adjusted],
    as_of_seq: int | None = None,
) -> dict[Touched, dict[Back, int]]:
    """Return what stands posted back, up to a row: by rows of settlements, which are few, since the adjustment."""
    if not asked:
        return {}
    first_on, last_on = _days_of(asked, calendar)
    rows = driver(connection).execute(
        """
        SELECT leg.account, p.code, p.effective_on, sum(leg.amount)::bigint
        FROM ledger.journal AS j CROSS JOIN LATERAL (
            SELECT * FROM ledger.postings AS own
            WHERE own.book = j.book AND own.seq = j.seq AND own.recorded_at = j.recorded_at
            OFFSET 0 -- row by row: before it has statistics the planner would rather read all postings
        ) AS p CROSS JOIN LATERAL (
            VALUES (p.debit_pot, p.debit_account, -p.amount), (p.credit_pot, p.credit_account, p.amount)
        ) AS leg (pot, account, amount)
        WHERE j.book = %(book)s AND j.workload IS NULL AND j.type = 'ledger.settled' AND j.seq > %(since)s
          AND (%(seq)s::bigint IS NULL OR j.seq <= %(seq)s)
          AND p.commodity = %(commodity)s AND leg.account = ANY(%(accounts)s) AND p.reason = %(reason)s
          AND (leg.pot, p.code) IN (('spent', 'charge'), ('credited', 'credit'), ('unallocated', 'unallocated'))
          AND p.effective_on BETWEEN %(first)s AND %(last)s
        GROUP BY 1, 2, 3 HAVING sum(leg.amount) <> 0
        """,
        {
            "book": book,
            "since": min(known.since_seq for known in asked.values()),
            "seq": as_of_seq,
            "commodity": WEIGHTED,
            "accounts": sorted({of.account for of in asked}),
            "reason": SETTLED,
            "first": first_on,
            "last": last_on,
        },
    )
    found: dict[Touched, dict[Back, int]] = {}
    for account, code, day, amount in rows:
        found.setdefault(Touched(account, calendar.period_of(day)), {})[Back(code, day)] = amount
    return found


def _days_of(asked: Collection[Touched], calendar: Calendar) -> tuple[dt.date, dt.date]:
    periods = {of.period for of in asked}
    return calendar.days_of(min(periods))[0], calendar.days_of(max(periods))[1]


def _adjusted(
    connection: Reader | Writer, book: str, calendar: Calendar, as_of_seq: int | None = None
) -> dict[Touched, Adjusted]:
    """Return the accounts and periods of which what facts move was adjusted."""
    rows = driver(connection).execute(
        "SELECT seq, body->>'account', body->>'period', effective_at FROM ledger.journal"
        " WHERE book = %s AND workload IS NULL AND type = 'adjustment.posted' AND body->>'code' = ANY(%s)"
        " AND (%s::bigint IS NULL OR seq <= %s) ORDER BY seq",
        (book, list(CODES), as_of_seq, as_of_seq),
    )
    found: dict[Touched, Adjusted] = {}
    for seq, account, period, at in rows:
        of = Touched(owner_of(account), period)
        first = found[of].since_seq if of in found else seq
        found[of] = Adjusted(orders.day_of(period, seconds(at), calendar), first)
    return found
