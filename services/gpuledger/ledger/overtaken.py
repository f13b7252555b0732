"""Adjustments that facts have overtaken: what takes back more than stands is posted back, so that no net is negative.

An adjustment is held against what stands when it is ordered. Facts that come later may leave less than it took back:
a run ended earlier than was known, or was another account's. Of an account and a period, charges then count as 0, and
credits as no more than what is charged. What is posted back follows from what stands, as all else does: it goes again
when facts leave room for the adjustment, whatever their order.
"""

import datetime as dt
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.kernel.accounts import owner_of
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import seconds
from gpuledger.ledger import orders
from gpuledger.ledger.charges import CHARGE, CREDIT, UNALLOCATED, WEIGHTED, Booking, Posting, corrections
from gpuledger.ledger.copying import driver
from gpuledger.ledger.settled import REASON, Touched
from gpuledger.ledger.store import LEGS

CODES = (CHARGE, CREDIT, UNALLOCATED)
"""What adjustments correct and facts move."""

_STANDS_IN = {CHARGE: "spent", CREDIT: "credited", UNALLOCATED: "unallocated"}
"""Code -> the pot whose sum under it is what stands."""

_NOTHING: Mapping[Touched, Mapping[str, int]] = {}


class Back(NamedTuple):
    """What is posted back, or stands so: under a code, on a day."""

    code: str
    day: dt.date


def due(
    writer: Writer, book: str, booking: Booking, postings: Iterable[Posting], *, is_tick: bool
) -> list[Posting]:
    """Return what is to be posted back, or taken back of that, after a batch that posted this.

    Args:
        writer: The transaction, the batch written.
        book: The book, locked.
        booking: Which periods are shut now.
        postings: What the batch posted.
        is_tick: Whether the book's clock moved: then all that stands is looked at, whatever the batch did to it.
    """
    adjusted = _adjusted(writer, book, booking.calendar)
    if not adjusted:
        return []
    changes = _changes(postings, booking.calendar)
    moved = {of: day for of, day in adjusted.items() if of in changes}
    # What nothing was posted back of stands by itself, and goes on to when more is used: most batches read nothing.
    may_overtake = is_tick or not all(_only_adds(changes[of]) for of in moved)
    if not moved or not (may_overtake or _is_any_back(writer, book, {of.account for of in moved}, None)):
        return []
    return _postings(writer, book, booking, moved, anew=False)


def wanted(reader: Reader, book: str, booking: Booking) -> list[Posting]:
    """Return all that must have been posted back, worked out anew."""
    return _postings(reader, book, booking, _adjusted(reader, book, booking.calendar), anew=True)


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
    adjusted = _adjusted(reader, book, booking.calendar, as_of_seq)
    moved = {of: day for of, day in adjusted.items() if of in further}
    if not moved or not _is_any_back(reader, book, {of.account for of in moved}, as_of_seq):
        return []
    return _postings(reader, book, booking, moved, anew=False, further=further, as_of_seq=as_of_seq)


def posted_back(standing: Mapping[str, int]) -> dict[str, int]:
    """Return code -> what must be added to what stands under it without this; what needs nothing is absent. Pure."""
    charged, credited, unallocated = (standing.get(code, 0) for code in CODES)
    back = {
        CHARGE: max(0, -charged),
        CREDIT: min(max(0, credited), max(0, charged)) - credited,
        UNALLOCATED: max(0, -unallocated),
    }
    return {code: amount for code, amount in back.items() if amount}


def _changes(postings: Iterable[Posting], calendar: Calendar) -> dict[Touched, dict[str, int]]:
    """Return account and period -> code -> what postings add to what stands under it."""
    found: dict[Touched, dict[str, int]] = {}
    for posting in postings:
        if posting.commodity != WEIGHTED or posting.code not in CODES:
            continue
        for leg, amount in ((posting.debit, -posting.amount), (posting.credit, posting.amount)):
            own = found.setdefault(Touched(leg.account, calendar.period_of(posting.day)), {})
            if _STANDS_IN[posting.code] == leg.pot:
                own[posting.code] = own.get(posting.code, 0) + amount
    return found


def _only_adds(change: Mapping[str, int]) -> bool:
    return not change.get(CREDIT, 0) and all(amount >= 0 for amount in change.values())


def _postings(
    connection: Reader | Writer,
    book: str,
    booking: Booking,
    days: Mapping[Touched, dt.date],
    *,
    anew: bool,
    further: Mapping[Touched, Mapping[str, int]] = _NOTHING,
    as_of_seq: int | None = None,
) -> list[Posting]:
    if not days:
        return []
    standing, have = _standing(connection, book, booking.calendar, days, as_of_seq)
    found = []
    for of, day in sorted(days.items()):
        stood, more = standing.get(of, {}), further.get(of, {})
        stood = {code: stood.get(code, 0) + more.get(code, 0) for code in CODES}
        want = {Back(code, day): amount for code, amount in posted_back(stood).items()}
        stands = {} if anew else have.get(of, {})
        for back in sorted(want.keys() | stands.keys()):
            if amount := want.get(back, 0) - stands.get(back, 0):
                found += corrections(back.code, of.account, amount, back.day, booking, None, REASON)
    return found


def _is_any_back(
    reader: Reader | Writer, book: str, accounts: Collection[str], as_of_seq: int | None
) -> bool:
    """Tell whether anything was ever posted back of the accounts' adjustments: rows of settlements are few."""
    row = driver(reader).execute(
        "SELECT EXISTS (SELECT FROM ledger.journal AS j JOIN ledger.postings AS p USING (book, seq, recorded_at)"
        " WHERE j.book = %(book)s AND j.workload IS NULL AND j.type = 'ledger.settled' AND p.code = ANY(%(codes)s)"
        " AND (p.debit_account = ANY(%(accounts)s) OR p.credit_account = ANY(%(accounts)s))"
        " AND (%(seq)s::bigint IS NULL OR j.seq <= %(seq)s))",
        {"book": book, "codes": list(CODES), "accounts": sorted(accounts), "seq": as_of_seq},
    ).fetchone()  # fmt: skip
    return bool(row and row[0])


def _adjusted(
    connection: Reader | Writer, book: str, calendar: Calendar, as_of_seq: int | None = None
) -> dict[Touched, dt.date]:
    """Return the accounts and periods of which what facts move was adjusted -> the day of the newest adjustment."""
    rows = driver(connection).execute(
        "SELECT body->>'account', body->>'period', effective_at FROM ledger.journal"
        " WHERE book = %s AND workload IS NULL AND type = 'adjustment.posted' AND body->>'code' = ANY(%s)"
        " AND (%s::bigint IS NULL OR seq <= %s) ORDER BY seq",
        (book, list(CODES), as_of_seq, as_of_seq),
    )
    return {
        Touched(owner_of(account), period): orders.day_of(period, seconds(at), calendar)
        for account, period, at in rows
    }


def _standing(
    connection: Reader | Writer,
    book: str,
    calendar: Calendar,
    days: Iterable[Touched],
    as_of_seq: int | None = None,
) -> tuple[dict[Touched, dict[str, int]], dict[Touched, dict[Back, int]]]:
    """Return what stands by code without what was posted back, and what was posted back."""
    accounts, periods = {of.account for of in days}, {of.period for of in days}
    rows = driver(connection).execute(
        f"""
        SELECT account, code, effective_on, reason IS NOT DISTINCT FROM %(reason)s, sum(amount)::bigint
        FROM ({LEGS}) AS legs
        WHERE book = %(book)s AND commodity = %(commodity)s AND account = ANY(%(accounts)s)
          AND effective_on BETWEEN %(first)s AND %(last)s AND (%(seq)s::bigint IS NULL OR seq <= %(seq)s)
          AND (pot, code) IN (('spent', 'charge'), ('credited', 'credit'), ('unallocated', 'unallocated'))
        GROUP BY 1, 2, 3, 4
        """,
        {
            "book": book,
            "commodity": WEIGHTED,
            "accounts": list(accounts),
            "reason": REASON,
            "first": calendar.days_of(min(periods))[0],
            "last": calendar.days_of(max(periods))[1],
            "seq": as_of_seq,
        },
    )
    standing: dict[Touched, dict[str, int]] = {}
    have: dict[Touched, dict[Back, int]] = {}
    for account, code, day, is_back, amount in rows:
        of = Touched(account, calendar.period_of(day))
        if is_back:
            have.setdefault(of, {})[Back(code, day)] = amount
        else:
            own = standing.setdefault(of, {})
            own[code] = own.get(code, 0) + amount
    return standing, have
