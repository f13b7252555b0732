"""What follows from a workload's facts -> the postings that must stand, and the difference to those that do. Pure.

One posting per run x account x class x organisation day (days lie inside periods), in each commodity: ``gpu_ms``
is physical, ``gpu_ms_weighted`` is gpu_ms times the model's per-mille weight, never divided. The debit-credit table
is that of DESIGN section 7. Holds are in weighted units only: physical time is never set aside.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from gpuledger.kernel.accounts import BOOK_POT_ACCOUNT, owner_of
from gpuledger.kernel.amounts import WEIGHT_ONE
from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger.holds import Hold
from gpuledger.ledger.rates import UNWEIGHTED, Rates
from gpuledger.ledger.segments import History, Segment

PHYSICAL = "gpu_ms"
WEIGHTED = "gpu_ms_weighted"
COMMODITIES = (PHYSICAL, WEIGHTED)

CHARGE = "charge"
UNALLOCATED = "unallocated"
HOLD = "hold"
RELEASE = "release"
CREDIT = "credit"
EXPIRY = "expiry"
ROLLOVER = "rollover"
GRANT = "grant"
TRANSFER = "transfer"

MINIMUM = "minimum"
"""What a rollover's minimum gives beyond what was left: posted as a grant to a period, by the one before."""

SETTLED = "ledger.settled"
"""The reason of what a settlement posts anew; of what a rollover's minimum grants always, which tells it from other
grants; and of what is posted back of adjustments."""

ADJUSTMENT = "adjustment"
"""The reason of postings that somebody ordered to correct others."""

_INTO = {
    (CHARGE, "budget"): "spent",
    (CHARGE, "held"): "spent",
    (UNALLOCATED, "free"): "unallocated",
    (HOLD, "budget"): "held",
    (CREDIT, "spent"): "credited",
    (CREDIT, "issue"): "budget",
    (EXPIRY, "budget"): "expired",
    (ROLLOVER, "expired"): "budget",
    (GRANT, "issue"): "budget",
}
"""The debit-credit table: (code, debit pot) -> credit pot."""

_ONE_DAY = dt.timedelta(days=1)


class Pot(NamedTuple):
    """A posting address within a book and commodity.

    Args:
        account: Whose own GPU-time it is: a leaf, or what an inner node owns itself. The tree, which grows without
            the book, decides at reading which of both: the pots of an inner node are its child ``~own``.
    """

    pot: str
    account: str
    period: str


class Key(NamedTuple):
    """What one net amount is kept for (law 3).

    Args:
        pot: The debit pot: it tells a charge that drains a hold from one of the budget.
        run: The run; ``#ATTEMPT`` for holds; empty for what belongs to an account as a whole.
        day: The organisation's day that it is effective on. It decides the period, whenever it was booked.
    """

    code: str
    commodity: str
    account: str
    pot: str
    run: str
    day: dt.date


class Posting(NamedTuple):
    """An amount moved from one pot to another, for a reason.

    Args:
        amount: Above zero; the direction is in the pots.
        reverses_seq: The journal row whose posting this takes back in part or whole.
        reason: Why, for a correction.
    """

    code: str
    commodity: str
    amount: int
    debit: Pot
    credit: Pot
    workload: str | None
    run: str | None
    day: dt.date
    reverses_seq: int | None = None
    reason: str | None = None


Moved = Mapping[tuple[str, str, Pot, Pot, dt.date, str | None], int]
"""(code, commodity, debit, credit, day, reason) -> how much was moved so."""


def together(postings: Iterable[Posting]) -> Moved:
    """Return what postings move that differ in amount and run alone: few, however many the postings are."""
    moved: dict[tuple[str, str, Pot, Pot, dt.date, str | None], int] = {}
    for code, commodity, amount, debit, credit, _, _, day, _, reason in postings:
        key = (code, commodity, debit, credit, day, reason)
        moved[key] = moved.get(key, 0) + amount
    return moved


class Posted(NamedTuple):
    """The net amount that stands for a key, and the newest journal row that moved it."""

    amount: int
    seq: int


class Booking(NamedTuple):
    """Where amounts are booked: in their own period, or in the next that is not shut (law 8).

    Args:
        calendar: The organisation's days.
        shut: Periods that are closing or closed.
    """

    calendar: Calendar
    shut: frozenset[str] = frozenset()

    def period(self, day: dt.date) -> str:
        """Return the period into which what is effective on a day is booked now."""
        return self.into(self.calendar.period_of(day))

    def into(self, period: str) -> str:
        """Return the period into which what is effective in a period is booked now."""
        while period in self.shut:
            period = self.calendar.following(period)
        return period


def desired(
    history: History, calendar: Calendar, card: Rates = UNWEIGHTED, ticked_s: int | None = None
) -> dict[Key, int]:
    """Return the net amounts that must stand for one workload.

    Args:
        history: What follows from the facts known of the workload.
        calendar: Cuts the organisation's days.
        card: What each model weighs, from when on.
        ticked_s: Where the book's clock stands: open runs are charged up to here. None before its first tick.
    """
    amounts: dict[Key, int] = {}
    drained: dict[str, list[tuple[int, int]]] = {}
    for hold in history.holds:
        if hold.run is not None:
            drained.setdefault(hold.run, []).append((hold.from_s, hold.to_s))
    for segment in history.segments:
        if segment.to_s is None and (ticked_s is None or ticked_s <= segment.from_s):
            continue
        until_s = segment.to_s if segment.to_s is not None else segment.until_s(ticked_s or 0)
        charge(amounts, segment, until_s, drained.get(segment.run, ()), calendar, card)
    for hold in history.holds:
        for key, amount in _set_aside(hold, history.segments, calendar, card, ticked_s):
            amounts[key] = amounts.get(key, 0) + amount
    for given in history.credits:
        _give_back(amounts, given.run, (given.from_s, given.to_s), history.segments, calendar, card)
    return amounts


def charge(
    amounts: dict[Key, int],
    segment: Segment,
    until_s: int,
    drained: Sequence[tuple[int, int]],
    calendar: Calendar,
    card: Rates,
) -> None:
    """Add what a segment costs.

    Args:
        amounts: Net amounts, to be added to.
        segment: The segment.
        until_s: Where it ends, or is charged up to.
        drained: Windows of time that its run pays from a hold.
        calendar: Cuts the organisation's days.
        card: What each model weighs.
    """
    account, run, model, gpus_milli = segment.account, segment.run, segment.gpu_model, segment.gpus_milli
    code, pot = (CHARGE, "budget") if segment.klass == "allocated" else (UNALLOCATED, "free")
    for piece in calendar.slices(segment.from_s, until_s):
        key = Key(code, PHYSICAL, account, pot, run, piece.day)
        amounts[key] = amounts.get(key, 0) + gpus_milli * (piece.end_s - piece.start_s)
        weighted = card.weighted(model, gpus_milli, piece.start_s, piece.end_s)
        if drained and code == CHARGE:
            held = sum(
                card.weighted(model, gpus_milli, start_s, end_s)
                for start_s, end_s in _overlaps(piece.start_s, piece.end_s, drained)
            )
            weighted -= held
            key = Key(code, WEIGHTED, account, "held", run, piece.day)
            amounts[key] = amounts.get(key, 0) + held
        key = Key(code, WEIGHTED, account, pot, run, piece.day)
        amounts[key] = amounts.get(key, 0) + weighted


def _set_aside(
    hold: Hold, segments: Iterable[Segment], calendar: Calendar, card: Rates, ticked_s: int | None
) -> Iterator[tuple[Key, int]]:
    """Yield what must have gone into ``held`` for a hold, drained or not.

    A run holds what it occupies, allocated, within its window: what it gave up of the window went back.
    """
    if hold.run is None:
        has_lapsed = ticked_s is not None and hold.expires_s is not None and ticked_s >= hold.expires_s
        parts = (
            [] if has_lapsed else [(hold.account, hold.gpus_milli, hold.gpu_model, hold.from_s, hold.to_s)]
        )
    else:
        parts = [
            (s.account, s.gpus_milli, s.gpu_model, *span)
            for s in segments
            if s.run == hold.run and s.klass == "allocated"
            for span in _overlaps(hold.from_s, hold.to_s, ((s.from_s, s.until_s(hold.to_s)),))
        ]
    for account, gpus_milli, model, start_s, end_s in parts:
        for piece in calendar.slices(start_s, end_s):
            weighted = card.weighted(model, gpus_milli, piece.start_s, piece.end_s)
            yield Key(HOLD, WEIGHTED, account, "budget", hold.mark, piece.day), weighted


def _give_back(
    amounts: dict[Key, int],
    run: str,
    span: tuple[int, int],
    segments: Iterable[Segment],
    calendar: Calendar,
    card: Rates,
) -> None:
    """Add the credit of a run: what it was charged within the span, on the days on which it was charged."""
    for segment in segments:
        if segment.run != run or segment.klass != "allocated" or segment.to_s is None:
            continue
        for start_s, end_s in _overlaps(segment.from_s, segment.to_s, (span,)):
            for piece in calendar.slices(start_s, end_s):
                gpu_ms = segment.gpus_milli * (piece.end_s - piece.start_s)
                weighted = card.weighted(segment.gpu_model, segment.gpus_milli, piece.start_s, piece.end_s)
                for commodity, pot, amount in (
                    (PHYSICAL, "spent", gpu_ms),
                    (WEIGHTED, "spent", weighted),
                    (WEIGHTED, "issue", weighted),
                ):
                    key = Key(CREDIT, commodity, segment.account, pot, run, piece.day)
                    amounts[key] = amounts.get(key, 0) + amount


def _overlaps(start_s: int, end_s: int, windows: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for from_s, to_s in windows:
        if (begin := max(start_s, from_s)) < (end := min(end_s, to_s)):
            yield begin, end


def difference(
    want: Mapping[Key, int],
    have: Mapping[Key, Posted],
    *,
    workload: str | None,
    reason: str,
    booking: Booking,
) -> list[Posting]:
    """Return the postings that turn what stands into what must stand, in a fixed order."""
    postings = []
    for key in sorted(want.keys() | have.keys() if have else want):
        posted = have.get(key)
        amount = want.get(key, 0) - (posted.amount if posted else 0)
        if amount == 0:
            continue
        code, commodity, _, _, run, day = key
        debit, credit = pots(key, booking)
        corrects = posted.seq if posted and amount < 0 else None
        if amount < 0:
            debit, credit = credit, debit
            if code == HOLD:
                code = RELEASE
        why = reason if posted else None
        if code == MINIMUM:  # its reason tells it from what somebody granted
            code, why = GRANT, reason
        postings.append(
            Posting(
                code, commodity, abs(amount), debit, credit, workload, run or None, day, corrects, why,
            )
        )  # fmt: skip
    return postings


def pots(key: Key, booking: Booking) -> tuple[Pot, Pot]:
    """Return the debit and credit pots of a movement that is effective on the key's day.

    What rolls over enters the budget of the period after that of its day; a minimum is issued by the period before.
    """
    code, _, account, pot, _, day = key
    return _pots(code, account, pot, day, booking)


@lru_cache(maxsize=4096)
def _pots(code: str, account: str, pot: str, day: dt.date, booking: Booking) -> tuple[Pot, Pot]:
    """Return the pots; the runs of an account's day all move between the same two."""
    period = into = booking.period(day)
    if code == ROLLOVER:
        into = booking.period(day + _ONE_DAY)
    elif code == MINIMUM:
        code, period = GRANT, booking.period(day - _ONE_DAY)
    owner = BOOK_POT_ACCOUNT if pot in ("issue", "free") else account
    return Pot(pot, owner, period), Pot(_INTO[code, pot], account, into)


def grant(account: str, gpu_ms: int, day: dt.date, booking: Booking, code: str = GRANT) -> Posting:
    """Return the posting of a grant: issue -> budget, in weighted units."""
    debit, credit = pots(Key(code, WEIGHTED, owner_of(account), "issue", "", day), booking)
    return Posting(code, WEIGHTED, gpu_ms * WEIGHT_ONE, debit, credit, None, None, day)


def adjustments(
    code: str, account: str, gpu_ms: int, day: dt.date, booking: Booking, corrects_seq: int | None
) -> list[Posting]:
    """Return the postings of an adjustment: those of the code it corrects, the other way when it takes back.

    Physical time follows from facts alone: an adjustment moves weighted amounts.
    """
    amount = gpu_ms * WEIGHT_ONE
    return corrections(code, owner_of(account), amount, day, booking, corrects_seq, ADJUSTMENT)


def corrections(
    code: str, owner: str, amount: int, day: dt.date, booking: Booking, corrects_seq: int | None, reason: str
) -> list[Posting]:
    """Return the postings of a weighted amount under a code, for no run; the other way when it is below zero."""
    found = []
    for of, pot in _INTO:
        if of == code and pot != "held":
            debit, credit = pots(Key(code, WEIGHTED, owner, pot, "", day), booking)
            if amount < 0:
                debit, credit = credit, debit
            found.append(
                Posting(code, WEIGHTED, abs(amount), debit, credit, None, None, day, corrects_seq, reason)
            )
    return found


def transfer(account: str, to: str, gpu_ms: int, day: dt.date, booking: Booking) -> Posting:
    """Return the posting of a transfer: budget -> budget of another leaf, in weighted units."""
    period = booking.period(day)
    debit, credit = Pot("budget", owner_of(account), period), Pot("budget", owner_of(to), period)
    return Posting(TRANSFER, WEIGHTED, gpu_ms * WEIGHT_ONE, debit, credit, None, None, day)
