"""Segments -> the postings that must stand, and the difference to those that do. Pure.

One posting per run segment x account x class x organisation day (days lie inside periods), in each
commodity: ``gpu_ms`` is physical, ``gpu_ms_weighted`` is gpu_ms times the model's per-mille weight,
never divided. DESIGN section 7: charge = budget -> spent, unallocated use = free -> unallocated.
"""

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gpuledger.kernel.accounts import BOOK_POT_ACCOUNT
from gpuledger.kernel.amounts import WEIGHT_ONE
from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger.rates import UNWEIGHTED, Rates
from gpuledger.ledger.segments import Segment

PHYSICAL = "gpu_ms"
WEIGHTED = "gpu_ms_weighted"
COMMODITIES = (PHYSICAL, WEIGHTED)

CHARGE = "charge"
UNALLOCATED = "unallocated"
GRANT = "grant"
TRANSFER = "transfer"


class Pot(NamedTuple):
    """A posting address within a book and commodity."""

    pot: str
    account: str
    period: str


class Key(NamedTuple):
    """What one net amount is kept for (law 3)."""

    code: str
    commodity: str
    account: str
    run: str
    day: dt.date
    period: str


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


class Posted(NamedTuple):
    """The net amount that stands for a key, and the newest journal row that moved it."""

    amount: int
    seq: int


def desired(segments: Iterable[Segment], calendar: Calendar, card: Rates = UNWEIGHTED) -> dict[Key, int]:
    """Return the net amounts that must stand for the closed segments of one workload.

    Args:
        segments: What follows from the facts known of the workload.
        calendar: Cuts the organisation's days.
        card: What each model weighs, from when on.
    """
    amounts: dict[Key, int] = {}
    for segment in segments:
        if segment.to_s is None:
            continue
        code = CHARGE if segment.klass == "allocated" else UNALLOCATED
        for piece in calendar.slices(segment.from_s, segment.to_s):
            gpu_ms = segment.gpus_milli * (piece.end_s - piece.start_s)
            period = calendar.period_of(piece.day)
            weighted = card.weighted(segment.gpu_model, segment.gpus_milli, piece.start_s, piece.end_s)
            for commodity, amount in ((PHYSICAL, gpu_ms), (WEIGHTED, weighted)):
                key = Key(code, commodity, segment.account, segment.run, piece.day, period)
                amounts[key] = amounts.get(key, 0) + amount
    return amounts


def difference(
    want: Mapping[Key, int], have: Mapping[Key, Posted], *, workload: str, reason: str
) -> list[Posting]:
    """Return the postings that turn what stands into what must stand, in a fixed order."""
    postings = []
    for key in sorted(want.keys() | have.keys()):
        posted = have.get(key)
        amount = want.get(key, 0) - (posted.amount if posted else 0)
        if amount == 0:
            continue
        debit, credit = pots(key)
        if amount < 0:
            debit, credit = credit, debit
        postings.append(
            Posting(
                code=key.code,
                commodity=key.commodity,
                amount=abs(amount),
                debit=debit,
                credit=credit,
                workload=workload,
                run=key.run,
                day=key.day,
                reverses_seq=posted.seq if posted and amount < 0 else None,
                reason=reason if posted else None,
            )
        )
    return postings


def pots(key: Key) -> tuple[Pot, Pot]:
    """Return the debit and credit pots of a charge or of unallocated use."""
    if key.code == CHARGE:
        return Pot("budget", key.account, key.period), Pot("spent", key.account, key.period)
    return Pot("free", BOOK_POT_ACCOUNT, key.period), Pot("unallocated", key.account, key.period)


def grant(account: str, period: str, gpu_ms: int, day: dt.date) -> Posting:
    """Return the posting of a grant: issue -> budget, in weighted units."""
    return Posting(
        code=GRANT,
        commodity=WEIGHTED,
        amount=gpu_ms * WEIGHT_ONE,
        debit=Pot("issue", BOOK_POT_ACCOUNT, period),
        credit=Pot("budget", account, period),
        workload=None,
        run=None,
        day=day,
    )


def transfer(account: str, to: str, period: str, gpu_ms: int, day: dt.date) -> Posting:
    """Return the posting of a transfer: budget -> budget of another leaf, in weighted units."""
    return Posting(
        code=TRANSFER,
        commodity=WEIGHTED,
        amount=gpu_ms * WEIGHT_ONE,
        debit=Pot("budget", account, period),
        credit=Pot("budget", to, period),
        workload=None,
        run=None,
        day=day,
    )
