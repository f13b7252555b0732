"""Sums of movements -> the lines of a statement. Pure.

Amounts stay what the ledger holds: whole numbers of gpu_ms x per mille, and of gpu_ms for physical time. People see
GPU-hours, which are made where they are shown.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TypeVar

import msgspec

from gpuledger.close.document import Late, Line, Physical, Totals, Weighted
from gpuledger.kernel.accounts import BOOK_POT_ACCOUNT, own_path
from gpuledger.ledger.booked import Sum
from gpuledger.ledger.charges import PHYSICAL, WEIGHTED

_WEIGHTED: dict[tuple[str, str], tuple[str, int]] = {
    ("budget", "grant"): ("granted", 1),
    ("budget", "rollover"): ("rolled_in", 1),
    ("budget", "transfer"): ("transferred", 1),
    ("spent", "charge"): ("charged", 1),
    ("expired", "expiry"): ("expired", 1),
    ("expired", "rollover"): ("rolled_out", -1),
}
"""(pot, code) -> the column, and the sign with which it is told."""

_POTS = {"held": "held", "credited": "credited", "unallocated": "unallocated"}
"""Pots that are told whole, whatever moved them."""

_PHYSICAL = {("spent", "charge"): "allocated", ("unallocated", "unallocated"): "unallocated"}

Amounts = dict[str, int]

_Amounts = TypeVar("_Amounts", Weighted, Physical)


def lines(sums: Iterable[Sum], inner: Collection[str]) -> list[Line]:
    """Return the line of each account that anything was booked for, sorted.

    Args:
        sums: What was booked into the period.
        inner: Accounts that have others below them: what they own themselves is their leaf ``~own``.
    """
    return [
        Line(account=account, weighted=weighted, physical=physical)
        for (account, _), weighted, physical in _added_up(sums, inner, lambda _: "")
    ]


def late(sums: Iterable[Sum], inner: Collection[str], period: str) -> list[Late]:
    """Return what was booked into a period and belongs to another, by account and that period."""
    elsewhere = (each for each in sums if each.belongs_to != period)
    return [
        Late(account=account, period=of, weighted=weighted, physical=physical)
        for (account, of), weighted, physical in _added_up(elsewhere, inner, lambda each: each.belongs_to)
    ]


def totals(accounts: Iterable[Line]) -> Totals:
    """Return the sum of all lines."""
    told = list(accounts)
    return Totals(
        accounts=len(told),
        weighted=_struct(Weighted, _summed(line.weighted for line in told)),
        physical=_struct(Physical, _summed(line.physical for line in told)),
    )


def _added_up(
    sums: Iterable[Sum], inner: Collection[str], key: Callable[[Sum], str]
) -> Iterator[tuple[tuple[str, str], Weighted, Physical]]:
    found: dict[tuple[str, str], tuple[Amounts, Amounts]] = {}
    for each in sums:
        if each.account == BOOK_POT_ACCOUNT:
            continue
        account = own_path(each.account) if each.account in inner else each.account
        weighted, physical = found.setdefault((account, key(each)), ({}, {}))
        if each.commodity == WEIGHTED:
            _add_weighted(weighted, each)
        elif each.commodity == PHYSICAL and (column := _PHYSICAL.get((each.pot, each.code))):
            physical[column] = physical.get(column, 0) + each.amount
    for place, (weighted, physical) in sorted(found.items()):
        yield place, _struct(Weighted, weighted), _struct(Physical, physical)


def _add_weighted(amounts: Amounts, each: Sum) -> None:
    if each.pot == "budget":
        amounts["left"] = amounts.get("left", 0) + each.amount
    if (column := _POTS.get(each.pot)) is not None:
        amounts[column] = amounts.get(column, 0) + each.amount
    elif (told := _WEIGHTED.get((each.pot, each.code))) is not None:
        column, sign = told
        amounts[column] = amounts.get(column, 0) + sign * each.amount


def _summed(parts: Iterable[Weighted] | Iterable[Physical]) -> Amounts:
    found: Amounts = {}
    for part in parts:
        for name in part.__struct_fields__:
            found[name] = found.get(name, 0) + getattr(part, name)
    return found


def _struct(kind: type[_Amounts], amounts: Amounts) -> _Amounts:
    return msgspec.convert(amounts, kind)
