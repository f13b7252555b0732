"""Expiry and rollover of a book: what must stand for its lots, and the difference to what is posted.

Settled is what a lot's lapse or a period's close has fixed. A late fact recomputes the whole arithmetic of every
period from its own up to the last closed one - charges, lots, expiry, rollover - and the difference is posted
into the open period with its original day (law 8). The same method as for charges, by account instead of workload.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gpuledger.database.engine import Reader, Writer
from gpuledger.events import closing
from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger import settled
from gpuledger.ledger.charges import (
    EXPIRY,
    GRANT,
    MINIMUM,
    ROLLOVER,
    SETTLED,
    WEIGHTED,
    Booking,
    Key,
    Moved,
    Posted,
    Posting,
    difference,
)
from gpuledger.ledger.copying import driver
from gpuledger.ledger.lots import Lot, Settlement, settle
from gpuledger.ledger.projections import Journalled
from gpuledger.ledger.settled import DEBT, Carried, Settled, Touched

_NOTHING: Mapping[Touched, Mapping[dt.date, int]] = {}


def due(
    writer: Writer,
    book: str,
    booking: Booking,
    ticks: tuple[int | None, int | None],
    facts: Sequence[Journalled],
    by_batch: Iterable[Moved],
) -> list[Posting]:
    """Return the expiry and rollover to be posted after a batch, and bring the carried lots up to date.

    Args:
        writer: The transaction, the batch written.
        book: The book, locked.
        booking: Which periods are shut now.
        ticks: Where the book's clock stood before the batch, and where it stands.
        facts: What the batch told that is about no workload.
        by_batch: What was moved by its postings, and by those that followed from it.
    """
    before_s, ticked_s = ticks
    closings = [item.fact for item in facts if isinstance(item.fact, closing.PeriodClosed)]
    reopened = {item.fact.period for item in facts if isinstance(item.fact, closing.PeriodReopened)}
    moved = _touched(by_batch, booking.calendar)
    asked = None if closings or reopened else {t.account for t in moved}
    extent = settled.read(writer, book, booking.calendar, ticked_s, before_s=before_s, accounts=asked)
    if not (extent.closed or extent.lapses or reopened):
        return []
    # What lapsed before was settled then, and is again when something moves it.
    touched = {t for t in moved if t.period in extent.closed or t in extent.lapses} | extent.lapsed_since
    changed = {fact.period for fact in closings} | reopened
    touched |= settled.accounts_in(writer, extent, changed)
    found: list[Posting] = []
    for fact in closings:
        sealed = booking._replace(shut=booking.shut - {fact.period})
        found += _seal(
            writer, extent, fact, sealed, sorted(t.account for t in touched if t.period == fact.period)
        )
    return found + _restate(writer, extent, booking, touched, found)


def unposted(
    reader: Reader | Writer,
    book: Settled,
    booking: Booking,
    further: Mapping[Touched, Mapping[dt.date, int]],
) -> list[Posting]:
    """Return the expiry and rollover that a tick would post, and write nothing.

    Args:
        reader: A snapshot.
        book: How far it is settled when that tick has come.
        booking: Which periods are shut.
        further: Account and period -> day -> what the tick would take from the budget, other than this.
    """
    touched = {t for t in further if t.period in book.closed or t in book.lapses} | book.lapsed_since
    touched -= _unmoved(reader, book, further)
    starts: dict[str, str] = {}
    if (
        book.as_of_seq is not None
    ):  # as of then who was carried what is worked out anew, from the first close on
        for account, period in sorted(touched | book.lapses):
            starts.setdefault(account, min((*book.closed, period)))
    else:
        for account, period in sorted(touched):
            starts.setdefault(account, period)
    from_scratch = book.as_of_seq is not None
    want, _ = _arithmetic(
        reader, book, starts, upto_seq=book.as_of_seq, from_scratch=from_scratch, further=further
    )
    return _differences(reader, book, booking, starts, want, ())


def _unmoved(
    reader: Reader | Writer, book: Settled, further: Mapping[Touched, Mapping[dt.date, int]]
) -> set[Touched]:
    """Return those whose further use comes after all that lapsed: it takes nothing of a lot that is gone.

    Unless something was given back on its day or later, which counts for earlier days as far as that one has no use.
    """
    after = {
        touched: days
        for touched, days in further.items()
        if touched in book.lapses - book.lapsed_since and touched.period not in book.closed
        and all(day >= book.gone_on[touched] and used > 0 for day, used in days.items())
    }  # fmt: skip
    if not after:
        return set()
    starts = {touched.account: touched.period for touched in after}
    first_day = min(day for days in after.values() for day in days)
    posted = settled.uses(reader, book, starts, None, from_day=first_day)
    return {touched for touched in after if all(used >= 0 for used in posted.get(touched, {}).values())}


def wanted(
    reader: Reader, book: str, calendar: Calendar, ticked_s: int | None
) -> tuple[dict[str, dict[Key, int]], list[tuple[object, ...]]]:
    """Return account -> the expiry and rollover that must stand, and the rows of carried lots, all worked out anew."""
    extent = settled.read(reader, book, calendar, ticked_s)
    want, carried = _arithmetic(reader, extent, _everything(reader, extent), from_scratch=True)
    return want, settled.carried_rows(book, carried)


def rebuild(writer: Writer, book: str, calendar: Calendar, ticked_s: int | None) -> None:
    """Write the carried lots anew, after the lots that were given."""
    extent = settled.read(writer, book, calendar, ticked_s)
    starts = _everything(writer, extent)
    _, carried = _arithmetic(writer, extent, starts, from_scratch=True)
    settled.write_carried(writer, extent, starts, carried)


def unfold(
    book: Settled,
    account: str,
    start: str,
    lots: Mapping[tuple[str, str], Sequence[Lot]],
    uses: Mapping[tuple[str, str], Mapping[dt.date, int]],
) -> tuple[dict[str, Settlement], Carried]:
    """Settle an account's periods one after the other; return each of them, and what goes on into later ones.

    Args:
        book: How far it is settled.
        account: The account.
        start: The first period; what was carried into it stands.
        lots: (account, period) -> its lots.
        uses: (account, period) -> day -> use, less what came back.
    """
    found: dict[str, Settlement] = {}
    carried: Carried = {}
    for period in book.through(account, start):
        own = list(lots.get((account, period), ()))
        if period != start:  # what is carried into it has just been worked out anew
            own = [lot for lot in own if not settled.is_carried(lot)] + carried.get((account, period), [])
        settlement = found[period] = _settle(book, period, own, uses.get((account, period), {}))
        if period in book.closed:
            debt = [Lot(DEBT, None, None, 0, -settlement.overrun, None)] if settlement.overrun else []
            carried[account, book.calendar.following(period)] = [*settlement.rolled, *debt]
    return found, carried


def standing(
    connection: Reader | Writer, book: str, calendar: Calendar, seq: int | None = None
) -> dict[tuple[str, str], list[Lot]]:
    """Return (account, period) -> the lots of a book, as of one of its rows; now unless given.

    What closes carried over is kept as it is now; as it was then it follows from the lots that were given.
    """
    extent = settled.read(connection, book, calendar, None, as_of_seq=seq)
    found = settled.lots(connection, extent, None, seq, from_scratch=seq is not None)
    if seq is not None and extent.closed and (starts := _everything(connection, extent)):
        _, last_day = calendar.days_of(max(extent.closed))
        then = extent._replace(today=last_day + dt.timedelta(days=1))
        _, carried = _arithmetic(connection, then, starts, upto_seq=seq, from_scratch=True)
        for place, lots in carried.items():
            found.setdefault(place, []).extend(lots)
    return found


def _touched(by_batch: Iterable[Moved], calendar: Calendar) -> set[Touched]:
    return {
        Touched(leg.account, calendar.period_of(day))
        for moved in by_batch
        for _, commodity, debit, credit, day, _ in moved
        if commodity == WEIGHTED
        for leg in (debit, credit)
        if leg.pot == "budget"
    }


def _everything(connection: Reader | Writer, book: Settled) -> dict[str, str]:
    """Return account -> the first period in which anything of it is settled."""
    starts: dict[str, str] = {}
    for account, period in sorted(settled.accounts_in(connection, book, book.closed) | book.lapses):
        starts.setdefault(account, period)
    return starts


def _seal(
    writer: Writer, book: Settled, fact: closing.PeriodClosed, booking: Booking, accounts: Sequence[str]
) -> list[Posting]:
    """Settle a period from what was booked into it before its closing, whatever came since."""
    row = driver(writer).execute(
        "SELECT closing_seq FROM ledger.periods WHERE book = %s AND period = %s", (book.name, fact.period)
    ).fetchone()  # fmt: skip
    assert row is not None  # noqa: S101 - the closed row was written in this batch
    alone = book._replace(closed=frozenset({fact.period}), last_lapse={})
    starts = dict.fromkeys(accounts, fact.period)
    want, _ = _arithmetic(writer, alone, starts, booked_in=fact.period, upto_seq=row[0])
    return _differences(writer, alone, booking, starts, want, (), booked_in=fact.period)


def _restate(
    writer: Writer, book: Settled, booking: Booking, touched: Iterable[Touched], sealed: Sequence[Posting]
) -> list[Posting]:
    starts: dict[str, str] = {}
    for account, period in sorted(touched):
        starts.setdefault(account, period)
    if not starts:
        return []
    want, carried = _arithmetic(writer, book, starts)
    settled.write_carried(writer, book, starts, carried)
    return _differences(writer, book, booking, starts, want, sealed)


def _arithmetic(
    connection: Reader | Writer,
    book: Settled,
    starts: Mapping[str, str],
    *,
    booked_in: str | None = None,
    upto_seq: int | None = None,
    from_scratch: bool = False,
    further: Mapping[Touched, Mapping[dt.date, int]] = _NOTHING,
) -> tuple[dict[str, dict[Key, int]], Carried]:
    """Settle each account from its start on; return what must stand, and what goes on into later periods."""
    if not starts:
        return {}, {}
    lots = settled.lots(connection, book, starts, upto_seq, from_scratch=from_scratch)
    uses = settled.uses(connection, book, starts, booked_in)
    for (account, period), days in further.items():
        own = uses.setdefault((account, period), {})
        for day, used in days.items():
            own[day] = own.get(day, 0) + used
    want: dict[str, dict[Key, int]] = {account: {} for account in starts}
    carried: Carried = {}
    for account, start in starts.items():
        found, gone_on = unfold(book, account, start, lots, uses)
        carried |= gone_on
        for period, settlement in found.items():
            for key, amount in _keys(book, account, period, settlement):
                want[account][key] = want[account].get(key, 0) + amount
    return want, carried


def _settle(book: Settled, period: str, lots: Sequence[Lot], uses: Mapping[dt.date, int]) -> Settlement:
    first_day, last_day = book.calendar.days_of(period)
    taken = dict(uses)
    for lot in lots:
        if lot.amount < 0:  # a debt is use of the first day
            taken[first_day] = taken.get(first_day, 0) - lot.amount
    given = [lot for lot in lots if lot.amount > 0]
    if (
        excess := -sum(taken.values())
    ) > 0:  # more came back than was ever used: it is left like any other lot
        given.append(Lot("refund", None, None, 0, excess, None))
    return settle(
        given,
        taken,
        first_day=first_day,
        last_day=last_day,
        today=book.today,
        closed=period in book.closed,
    )


def _keys(book: Settled, account: str, period: str, settlement: Settlement) -> Iterator[tuple[Key, int]]:
    _, last_day = book.calendar.days_of(period)
    for day, amount in settlement.expired.items():
        yield Key(EXPIRY, WEIGHTED, account, "budget", "", day), amount
    if settlement.carried:
        yield Key(ROLLOVER, WEIGHTED, account, "expired", "", last_day), settlement.carried
    if settlement.topped_up:
        first_day = last_day + dt.timedelta(days=1)
        yield Key(MINIMUM, WEIGHTED, account, "issue", "", first_day), settlement.topped_up


def _differences(
    connection: Reader | Writer,
    book: Settled,
    booking: Booking,
    starts: Mapping[str, str],
    want: Mapping[str, Mapping[Key, int]],
    sealed: Sequence[Posting],
    *,
    booked_in: str | None = None,
) -> list[Posting]:
    """Return what is to be posted; ``sealed`` is what this batch posts already."""
    if not starts:
        return []
    have = settled.posted(connection, book, starts, booked_in)
    for posting in sealed:
        _add(have, posting)
    return [
        posting
        for account in sorted(starts)
        for posting in difference(
            want[account], have.get(account, {}), workload=None, reason=SETTLED, booking=booking
        )
    ]


def _add(have: dict[str, dict[Key, Posted]], posting: Posting) -> None:
    is_forward = posting.credit.pot == ("expired" if posting.code == EXPIRY else "budget")
    source, owner = (posting.debit, posting.credit) if is_forward else (posting.credit, posting.debit)
    code = MINIMUM if posting.code == GRANT else posting.code
    key = Key(code, posting.commodity, owner.account, source.pot, "", posting.day)
    before = have.setdefault(owner.account, {}).get(key, Posted(0, 0))
    amount = posting.amount if is_forward else -posting.amount
    have[owner.account][key] = Posted(before.amount + amount, before.seq)
