"""Expiry and rollover of a book: what must stand for its lots, and the difference to what is posted.

Settled is what a lot's lapse or a period's close has fixed. A late fact recomputes the whole arithmetic of every
period from its own up to the last closed one - charges, lots, expiry, rollover - and the difference is posted
into the open period with its original day (law 8). The same method as for charges, by account instead of workload.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.events import closing
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import Refused
from gpuledger.ledger.charges import EXPIRY, ROLLOVER, WEIGHTED, Booking, Key, Posted, Posting, difference
from gpuledger.ledger.copying import copy_rows, driver
from gpuledger.ledger.lots import Lot, Rollover, Settlement, settle
from gpuledger.ledger.orders import LOT_COLUMNS
from gpuledger.ledger.projections import Journalled
from gpuledger.ledger.store import SIGNED

CARRIED = "rolled/"
"""What the names of carried lots begin with."""

DEBT = "debt"
"""The lot, below zero, of an overrun that is carried into the next period."""


class Touched(NamedTuple):
    """An account's budget and a period that something in a batch is effective in."""

    account: str
    period: str


class _Book(NamedTuple):
    """What decides how far a book is settled."""

    name: str
    closed: frozenset[str]
    today: dt.date
    calendar: Calendar

    def through(self, period: str) -> list[str]:
        """Return the periods that one period's arithmetic reaches: itself, and on through the last closed one."""
        last = max((*self.closed, period))
        found = [period]
        while found[-1] < last:
            found.append(self.calendar.following(found[-1]))
        if found[-1] in self.closed:
            found.append(self.calendar.following(found[-1]))
        return found


def due(
    writer: Writer,
    book: str,
    booking: Booking,
    ticked_s: int | None,
    facts: Sequence[Journalled],
    postings: Iterable[Posting],
) -> list[Posting]:
    """Return the expiry and rollover to be posted after a batch, and bring the carried lots up to date.

    Args:
        writer: The transaction, the batch written.
        book: The book, locked.
        booking: Which periods are shut now.
        ticked_s: Where the book's clock stands.
        facts: What the batch told that is about no workload.
        postings: What it posted.
    """
    settled = _settled(writer, book, booking.calendar, ticked_s)
    closings = [item.fact for item in facts if isinstance(item.fact, closing.PeriodClosed)]
    reopened = {item.fact.period for item in facts if isinstance(item.fact, closing.PeriodReopened)}
    lapses = _lapses(writer, settled)
    if not (settled.closed or lapses or reopened):
        return []
    touched = {t for t in _touched(postings, booking.calendar) if t.period in settled.closed or t in lapses}
    if any(isinstance(item.fact, closing.LedgerTicked) for item in facts):
        touched |= lapses
    changed = {fact.period for fact in closings} | reopened
    touched |= _accounts_in(writer, settled, changed)
    found: list[Posting] = []
    for fact in closings:
        sealed = booking._replace(shut=booking.shut - {fact.period})
        found += _seal(
            writer, settled, fact, sealed, sorted(t.account for t in touched if t.period == fact.period)
        )
    return found + _restate(writer, settled, booking, touched, found)


def wanted(
    reader: Reader, book: str, calendar: Calendar, ticked_s: int | None
) -> tuple[dict[str, dict[Key, int]], list[tuple[object, ...]]]:
    """Return account -> the expiry and rollover that must stand, and the rows of carried lots, all worked out anew."""
    settled = _settled(reader, book, calendar, ticked_s)
    want, carried = _arithmetic(reader, settled, _everything(reader, settled), from_scratch=True)
    return want, _rows(book, carried)


def rebuild(writer: Writer, book: str, calendar: Calendar, ticked_s: int | None) -> None:
    """Write the carried lots anew, after the lots that were given."""
    settled = _settled(writer, book, calendar, ticked_s)
    starts = _everything(writer, settled)
    _, carried = _arithmetic(writer, settled, starts, from_scratch=True)
    _write_carried(writer, settled, starts, carried)


def _settled(connection: Reader | Writer, book: str, calendar: Calendar, ticked_s: int | None) -> _Book:
    rows = driver(connection).execute(
        "SELECT period FROM ledger.periods WHERE book = %s AND state = 'closed'", (book,)
    )
    today = dt.date.min if ticked_s is None else calendar.day_of(ticked_s)
    return _Book(book, frozenset(period for (period,) in rows), today, calendar)


def _lapses(connection: Reader | Writer, book: _Book) -> set[Touched]:
    """Return the accounts and periods with lots that have lapsed before their period's close."""
    rows = driver(connection).execute(
        "SELECT DISTINCT account, period FROM ledger.lots WHERE book = %s AND expires_on <= %s",
        (book.name, book.today),
    )
    return {Touched(*row) for row in rows}


def _touched(postings: Iterable[Posting], calendar: Calendar) -> set[Touched]:
    return {
        Touched(leg.account, calendar.period_of(posting.day))
        for posting in postings
        if posting.commodity == WEIGHTED
        for leg in (posting.debit, posting.credit)
        if leg.pot == "budget"
    }


def _accounts_in(connection: Reader | Writer, book: _Book, periods: Iterable[str]) -> set[Touched]:
    """Return the accounts with lots in the periods, or with movements that belong there, whenever they were booked."""
    asked = list(periods)
    if not asked:
        return set()
    rows = driver(connection).execute(
        """
        SELECT account, period FROM ledger.lots WHERE book = %(book)s AND period = ANY(%(periods)s)
        UNION
        SELECT leg.account, moved.period
        FROM unnest(%(periods)s::text[], %(firsts)s::date[], %(lasts)s::date[]) AS moved (period, first_on, last_on)
        JOIN ledger.postings AS p ON p.effective_on BETWEEN moved.first_on AND moved.last_on
        CROSS JOIN LATERAL (VALUES (p.debit_pot, p.debit_account), (p.credit_pot, p.credit_account))
            AS leg (pot, account)
        WHERE p.book = %(book)s AND p.commodity = %(commodity)s AND leg.pot = 'budget'
        """,
        {
            "book": book.name,
            "periods": asked,
            "firsts": [book.calendar.days_of(period)[0] for period in asked],
            "lasts": [book.calendar.days_of(period)[1] for period in asked],
            "commodity": WEIGHTED,
        },
    )
    return {Touched(*row) for row in rows}


def _everything(connection: Reader | Writer, book: _Book) -> dict[str, str]:
    """Return account -> the first period in which anything of it is settled."""
    starts: dict[str, str] = {}
    for account, period in sorted(_accounts_in(connection, book, book.closed) | _lapses(connection, book)):
        starts.setdefault(account, period)
    return starts


def _seal(
    writer: Writer, book: _Book, fact: closing.PeriodClosed, booking: Booking, accounts: Sequence[str]
) -> list[Posting]:
    """Settle a period from what was booked into it before its closing, whatever came since."""
    row = driver(writer).execute(
        "SELECT closing_seq FROM ledger.periods WHERE book = %s AND period = %s", (book.name, fact.period)
    ).fetchone()  # fmt: skip
    assert row is not None  # noqa: S101 - the closed row was written in this batch
    alone = book._replace(closed=frozenset({fact.period}))
    starts = dict.fromkeys(accounts, fact.period)
    want, _ = _arithmetic(writer, alone, starts, booked_in=fact.period, upto_seq=row[0])
    return _differences(writer, alone, booking, starts, want, ())


def _restate(
    writer: Writer, book: _Book, booking: Booking, touched: Iterable[Touched], sealed: Sequence[Posting]
) -> list[Posting]:
    starts: dict[str, str] = {}
    for account, period in sorted(touched):
        starts.setdefault(account, period)
    if not starts:
        return []
    want, carried = _arithmetic(writer, book, starts)
    _write_carried(writer, book, starts, carried)
    return _differences(writer, book, booking, starts, want, sealed)


Carried = dict[tuple[str, str], list[Lot]]
"""(account, period) -> the lots that go on into it; a debt is a lot below zero."""


def _arithmetic(
    connection: Reader | Writer,
    book: _Book,
    starts: Mapping[str, str],
    *,
    booked_in: str | None = None,
    upto_seq: int | None = None,
    from_scratch: bool = False,
) -> tuple[dict[str, dict[Key, int]], Carried]:
    """Settle each account from its start on; return what must stand, and what goes on into later periods."""
    if not starts:
        return {}, {}
    lots = _lots(connection, book, starts, upto_seq, from_scratch=from_scratch)
    uses = _uses(connection, book, starts, booked_in)
    want: dict[str, dict[Key, int]] = {account: {} for account in starts}
    carried: Carried = {}
    for account, start in starts.items():
        for period in book.through(start):
            own = lots.get((account, period), [])
            if period != start:  # what is carried into it has just been worked out anew
                own = [lot for lot in own if not _is_carried(lot)] + carried.get((account, period), [])
            settlement = _settle(book, period, own, uses.get((account, period), {}))
            if period in book.closed:
                debt = [Lot(DEBT, None, None, 0, -settlement.overrun, None)] if settlement.overrun else []
                carried[account, book.calendar.following(period)] = [*settlement.rolled, *debt]
            for key, amount in _keys(book, account, period, settlement):
                want[account][key] = want[account].get(key, 0) + amount
    return want, carried


def _is_carried(lot: Lot) -> bool:
    return lot.name == DEBT or lot.name.startswith(CARRIED)


def _settle(book: _Book, period: str, lots: Sequence[Lot], uses: Mapping[dt.date, int]) -> Settlement:
    first_day, last_day = book.calendar.days_of(period)
    taken = dict(uses)
    for lot in lots:
        if lot.amount < 0:  # a debt is use of the first day
            taken[first_day] = taken.get(first_day, 0) - lot.amount
    given = [lot for lot in lots if lot.amount > 0]
    if (excess := -sum(taken.values())) > 0:  # more came back than was ever used: it is left like any other lot
        given.append(Lot("refund", None, None, 0, excess, None))
    return settle(
        given,
        taken,
        first_day=first_day,
        last_day=last_day,
        today=book.today,
        closed=period in book.closed,
    )


def _keys(book: _Book, account: str, period: str, settlement: Settlement) -> Iterator[tuple[Key, int]]:
    _, last_day = book.calendar.days_of(period)
    for day, amount in settlement.expired.items():
        yield Key(EXPIRY, WEIGHTED, account, "budget", "", day), amount
    if settlement.carried:
        yield Key(ROLLOVER, WEIGHTED, account, "expired", "", last_day), settlement.carried
    if settlement.topped_up:
        yield Key(ROLLOVER, WEIGHTED, account, "issue", "", last_day), settlement.topped_up


def _lots(
    connection: Reader | Writer,
    book: _Book,
    starts: Mapping[str, str],
    upto_seq: int | None,
    *,
    from_scratch: bool,
) -> dict[tuple[str, str], list[Lot]]:
    rows = driver(connection).execute(
        "SELECT account, period, name, priority, expires_on, created_seq, amount, rollover FROM ledger.lots"
        " WHERE book = %s AND account = ANY(%s) AND period >= %s AND (%s::bigint IS NULL OR created_seq <= %s)",
        (book.name, list(starts), min(starts.values()), upto_seq, upto_seq),
    )
    found: dict[tuple[str, str], list[Lot]] = {}
    for account, period, name, priority, expires_on, created, amount, rollover in rows:
        lot = Lot(name, priority, expires_on, created, amount, _rule(rollover))
        if not (from_scratch and _is_carried(lot)):
            found.setdefault((account, period), []).append(lot)
    return found


def _rule(text: str | None) -> Rollover | None:
    try:
        return Rollover.parse(text)
    except Refused:  # no version understood it: nothing goes on
        return None


def _uses(
    connection: Reader | Writer, book: _Book, starts: Mapping[str, str], booked_in: str | None
) -> dict[tuple[str, str], dict[dt.date, int]]:
    """Return (account, period) -> day -> what left the budget, other than by expiry and rollover, less what came back.

    Lots are what came in: grants and transfers received are none of it.
    """
    first_day, _ = book.calendar.days_of(min(starts.values()))
    rows = driver(connection).execute(
        """
        SELECT account, day, sum(amount)::bigint FROM (
            SELECT debit_account AS account, effective_on AS day, debit_period AS booked_in, amount
            FROM ledger.postings
            WHERE book = %(book)s AND commodity = %(commodity)s AND effective_on >= %(first)s AND debit_pot = 'budget'
              AND debit_account = ANY(%(accounts)s) AND code NOT IN ('expiry', 'rollover')
            UNION ALL
            SELECT credit_account, effective_on, credit_period, -amount
            FROM ledger.postings
            WHERE book = %(book)s AND commodity = %(commodity)s AND effective_on >= %(first)s AND credit_pot = 'budget'
              AND credit_account = ANY(%(accounts)s) AND code NOT IN ('expiry', 'rollover', 'grant', 'transfer')
        ) AS moved
        WHERE %(booked_in)s::text IS NULL OR booked_in = %(booked_in)s
        GROUP BY account, day
        """,
        {
            "book": book.name,
            "commodity": WEIGHTED,
            "first": first_day,
            "accounts": list(starts),
            "booked_in": booked_in,
        },
    )
    found: dict[tuple[str, str], dict[dt.date, int]] = {}
    for account, day, amount in rows:
        found.setdefault((account, book.calendar.period_of(day)), {})[day] = amount
    return found


def _differences(
    connection: Writer,
    book: _Book,
    booking: Booking,
    starts: Mapping[str, str],
    want: Mapping[str, Mapping[Key, int]],
    sealed: Sequence[Posting],
) -> list[Posting]:
    """Return what is to be posted; ``sealed`` is what this batch posts already."""
    if not starts:
        return []
    have = _posted(connection, book, starts)
    for posting in sealed:
        _add(have, posting)
    return [
        posting
        for account in sorted(starts)
        for posting in difference(
            want[account], have.get(account, {}), workload=None, reason="ledger.settled", booking=booking
        )
    ]


def _posted(
    connection: Reader | Writer, book: _Book, starts: Mapping[str, str]
) -> dict[str, dict[Key, Posted]]:
    first_day, _ = book.calendar.days_of(min(starts.values()))
    rows = driver(connection).execute(
        f"SELECT account, code, from_pot, effective_on, sum(signed)::bigint, max(seq) FROM ({SIGNED}"
        " WHERE book = %s AND code IN ('expiry', 'rollover') AND effective_on >= %s) AS own"
        " WHERE account = ANY(%s) GROUP BY account, code, from_pot, effective_on",
        (book.name, first_day, list(starts)),
    )
    found: dict[str, dict[Key, Posted]] = {}
    for account, code, pot, day, amount, seq in rows:
        if book.calendar.period_of(day) >= starts[account]:
            found.setdefault(account, {})[Key(code, WEIGHTED, account, pot, "", day)] = Posted(amount, seq)
    return found


def _add(have: dict[str, dict[Key, Posted]], posting: Posting) -> None:
    is_forward = posting.credit.pot == ("expired" if posting.code == EXPIRY else "budget")
    source, owner = (posting.debit, posting.credit) if is_forward else (posting.credit, posting.debit)
    key = Key(posting.code, posting.commodity, owner.account, source.pot, "", posting.day)
    before = have.setdefault(owner.account, {}).get(key, Posted(0, 0))
    amount = posting.amount if is_forward else -posting.amount
    have[owner.account][key] = Posted(before.amount + amount, before.seq)


def _write_carried(writer: Writer, book: _Book, starts: Mapping[str, str], carried: Carried) -> None:
    if not starts:
        return
    driver(writer).execute(
        "DELETE FROM ledger.lots AS l USING unnest(%s::text[], %s::text[]) AS s (account, period)"
        " WHERE l.book = %s AND l.account = s.account AND l.period > s.period AND (name = %s OR starts_with(name, %s))",
        (list(starts), list(starts.values()), book.name, DEBT, CARRIED),
    )
    rows = _rows(book.name, carried)
    if rows:
        copy_rows(writer, "ledger.lots", LOT_COLUMNS, rows)


def _rows(book: str, carried: Carried) -> list[tuple[object, ...]]:
    return [
        (
            book, account, period, lot.name, lot.priority, lot.expires_on, lot.created, lot.amount,
            lot.rollover.text if lot.rollover else None,
        )
        for (account, period), lots in sorted(carried.items())
        for lot in lots
    ]  # fmt: skip
