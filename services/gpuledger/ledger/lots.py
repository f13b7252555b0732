"""Lots of GPU-time: in which order use consumes them, when they lapse, and what is carried over. Pure.

Grants, transfers received and what was carried over are *lots* of one account, cluster and period
(DESIGN section 7: consumed in order of (priority, expiry, creation)). Days are the organisation's: a lot
is gone from the first instant of a day on, never within one (docs/decisions/0014). Amounts are gpu_ms x
per mille, the limits of a rollover gpu_ms, because a person writes them in GPU-hours.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gpuledger.events.fields import END_OF_TIME_S
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant, iso, seconds
from gpuledger.kernel.errors import Refused
from gpuledger.kernel.rollover import Rollover

ROLLED = "rolled/"
"""What the name of a lot begins with, once for each close that carried it over."""

_ONE_DAY = dt.timedelta(days=1)


class Lot(NamedTuple):
    """A grant, a transfer received, or what was carried over.

    Args:
        name: Unique within account, cluster and period, such as ``grant/12`` (the journal row).
        priority: The lower number is consumed first; None after every number.
        expires_on: The first day of the organisation on which it is gone; None is the end of the period.
        created: The journal row that made it, which is the order of creation.
        amount: Above zero; gpu_ms x per mille.
        rollover: What the next period gets; None is nothing.
    """

    name: str
    priority: int | None
    expires_on: dt.date | None
    created: int
    amount: int
    rollover: Rollover | None


class Settlement(NamedTuple):
    """What follows from a period's lots and uses; amounts in gpu_ms x per mille.

    Args:
        expired: Day -> what leaves ``budget`` for ``expired``. The day is the last on which the lot was
            there. Below zero on the period's last day only, by the overrun. No day has a zero.
        rolled: The lots of the next period, in the order in which they would be consumed.
        carried: What moves from ``expired`` to ``budget`` of the next period: the parts of ``rolled`` that
            were left, less the overrun; may be below zero.
        topped_up: What minima give beyond what was left: a fresh issue into the next period.
        overrun: Use that no lot covered. While the period is open it is only told; the close carries it
            into the next period as a debt.
    """

    expired: dict[dt.date, int]
    rolled: tuple[Lot, ...]
    carried: int
    topped_up: int
    overrun: int


def settle(
    lots: Iterable[Lot],
    uses: Mapping[dt.date, int],
    *,
    first_day: dt.date,
    last_day: dt.date,
    today: dt.date,
    closed: bool,
) -> Settlement:
    """Consume lots by use, let them lapse, and at the close carry over what their rules say.

    Each day's use is taken, days ascending, from the lots that are not yet gone on that day, in order of
    (priority, expiry, creation, name), whenever they were created: a grant of the 20th covers the 5th too.
    Whatever no such lot covers is overrun; it exists only while every lot that still lives is used up.

    A lot with ``expires_on`` <= ``today``, within the period, has lapsed and its rest expires on the day
    before; one that was gone before the period began expires whole on the first day. Its rollover is void.

    The close takes every other rest out of the period, on its last day. A lot that outlives the period
    (gone later than the day after it) is carried over whole with its expiry; any other with a rollover
    gives ``Rollover.carried`` to a lot that lasts to the end of the next period, under the same rule.
    The overrun comes back onto the last day, so that the closed period's budget ends at exactly 0:
    sum of lots - sum of uses - sum of expired = 0. In the next period that debt is no lot: the caller adds
    ``overrun`` to the use of its first day.

    Args:
        lots: Every lot of one account, cluster and period, in any order.
        uses: Day -> net amount that left the account's budget (charges, holds, transfers out, less credits).
            Below zero it is a refund, see ``net_uses``; refunds beyond all use are not seen here, and stay
            in the budget.
        first_day: The period's first day.
        last_day: Its last.
        today: The organisation's present day.
        closed: Whether the period is closed; only after ``last_day``.

    Raises:
        ValueError: When a day lies outside the period, a lot has no amount, shares its name or has no range
            for a rollover, or a period is to close before it is over: the caller's fault, never a person's.
    """
    ordered = sorted(lots, key=_order)
    _check(ordered, uses, first_day, last_day)
    if closed and today <= last_day:
        raise ValueError(f"a period that ends with {last_day} cannot close on {today}")
    rests, overrun = _consume(ordered, net_uses(uses))
    expired: dict[dt.date, int] = {}
    remaining: list[tuple[Lot, int]] = []
    for lot, rest in zip(ordered, rests, strict=True):
        if lot.expires_on is not None and lot.expires_on <= min(today, last_day):
            day = first_day if lot.expires_on <= first_day else lot.expires_on - _ONE_DAY
            expired[day] = expired.get(day, 0) + rest
        else:
            remaining.append((lot, rest))
    if not closed:
        return Settlement(_nonzero(expired), (), 0, 0, overrun)
    left = sum(rest for _, rest in remaining)
    expired[last_day] = expired.get(last_day, 0) + left - overrun
    return _carry_over(remaining, _nonzero(expired), overrun, last_day)


def net_uses(uses: Mapping[dt.date, int]) -> dict[dt.date, int]:
    """Return the days with use left, ascending, after refunds (amounts below zero) have reduced it.

    A refund reduces the use of earlier days, the nearest first; what is left of it then reduces that of
    later days, the nearest first. Refunds beyond all use reduce nothing further.
    """
    left: dict[dt.date, int] = {}
    refund = 0  # beyond all earlier use: ``left`` is empty while it is not 0
    for day, amount in sorted(uses.items()):
        if amount > 0:
            taken = min(refund, amount)
            refund -= taken
            if amount > taken:
                left[day] = amount - taken
            continue
        refund -= amount
        while refund and left:
            nearest, use = left.popitem()
            if use > refund:
                left[nearest] = use - refund
            refund = max(0, refund - use)
    return left


def expiry_day(expires_at: dt.datetime, calendar: Calendar) -> dt.date:
    """Return the first day on which a lot is gone, for an expiry that a person gave.

    Args:
        expires_at: An aware instant.
        calendar: The organisation's days.

    Raises:
        Refused: When a day of the organisation does not begin at that instant; names the two nearest that do.
    """
    at_s = seconds(expires_at)
    if not 0 <= at_s < END_OF_TIME_S:
        raise Refused(
            f"expires: {iso(expires_at)} is out of all bounds", hint="lots expire between 1970 and 2100"
        )
    day = calendar.day_of(at_s)
    if instant(calendar.day_start_s(day)) == expires_at:
        return day
    around = [f"{iso(instant(calendar.day_start_s(edge)))} ({edge})" for edge in (day, day + _ONE_DAY)]
    raise Refused(
        f"expires: {iso(expires_at)} is not the beginning of a day in {calendar.timezone}",
        hint=f"write {' or '.join(around)}",
    )


def _order(lot: Lot) -> tuple[bool, int, bool, dt.date, int, str]:
    return (
        lot.priority is None,
        lot.priority or 0,
        lot.expires_on is None,
        lot.expires_on or dt.date.max,
        lot.created,
        lot.name,
    )


def _check(lots: Sequence[Lot], uses: Mapping[dt.date, int], first_day: dt.date, last_day: dt.date) -> None:
    if outside := sorted(day for day in uses if not first_day <= day <= last_day):
        raise ValueError(f"use on {outside[0]} lies outside {first_day} to {last_day}")
    if empty := [lot.name for lot in lots if lot.amount <= 0]:
        raise ValueError(f"lot {empty[0]} has no amount")
    for lot in lots:
        least, most = lot.rollover or (0, None)
        if least < 0 or (most is not None and most < least):
            raise ValueError(f"the rollover of lot {lot.name} is no range")
    if len({lot.name for lot in lots}) < len(lots):
        raise ValueError("two lots of one period have the same name")


def _consume(lots: Sequence[Lot], uses: Mapping[dt.date, int]) -> tuple[list[int], int]:
    """Return what is left of each lot, and the use that none of them covered."""
    rests = [lot.amount for lot in lots]
    overrun = 0
    for day, use in uses.items():
        wanted = use
        for place, lot in enumerate(lots):
            if lot.expires_on is None or lot.expires_on > day:
                taken = min(wanted, rests[place])
                rests[place] -= taken
                wanted -= taken
        overrun += wanted
    return rests, overrun


def _carry_over(
    remaining: Iterable[tuple[Lot, int]], expired: dict[dt.date, int], overrun: int, last_day: dt.date
) -> Settlement:
    gives = [(_rolled(lot, rest, last_day), rest) for lot, rest in remaining]
    return Settlement(
        expired=expired,
        rolled=tuple(sorted((lot for lot, _ in gives if lot.amount), key=_order)),
        carried=sum(min(lot.amount, rest) for lot, rest in gives) - overrun,
        topped_up=sum(max(0, lot.amount - rest) for lot, rest in gives),
        overrun=overrun,
    )


def _rolled(lot: Lot, rest: int, last_day: dt.date) -> Lot:
    """Return the lot of the next period; its amount is 0 when there is none."""
    name = ROLLED + lot.name
    if lot.expires_on is not None and lot.expires_on > last_day + _ONE_DAY:
        return lot._replace(name=name, amount=rest)
    amount = 0 if lot.rollover is None else lot.rollover.carried(rest)
    return lot._replace(name=name, amount=amount, expires_on=None)


def _nonzero(amounts: Mapping[dt.date, int]) -> dict[dt.date, int]:
    return {day: amount for day, amount in sorted(amounts.items()) if amount}
