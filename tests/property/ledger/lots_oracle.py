"""What becomes of lots, played with tokens: every unit of GPU-time is one object that somebody takes.

Shares no code with the product. Days are whole numbers; amounts, limits included, are counts of tokens.
The rules it knows:

- a unit that was given back cancels a unit of use that is not cancelled yet: the nearest at or before its
  day, or when there is none the nearest after it, or none at all;
- the other units of use, day by day, each take one token of a lot that is not yet gone on their day; those
  who have a choice take of the lot that comes first by (priority, last day, birth, name), unknown ones last;
- today, a token of a lot that is gone is lost on the lot's last day, but never before the period;
- when the period is over the tokens that were not taken are lost on its last day, and the next period gets
  what each lot's rule says, less a debt of one token for each unit of use that found none.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Coins:
    """One lot. ``gone`` is the first day without it, ``limits`` what its rule carries over at least and at most."""

    name: str
    priority: int | None
    gone: int | None
    born: int
    count: int
    limits: tuple[int, int | None] | None
    purse: list[str] = field(default_factory=list)

    def comes_before(self, other: "Coins") -> bool:
        for mine, theirs in ((self.priority, other.priority), (self.gone, other.gone)):
            if mine != theirs:
                return theirs is None or (mine is not None and mine < theirs)
        return (self.born, self.name) < (other.born, other.name)


@dataclass
class Outcome:
    """What was lost by day, what the next period gets as (name, gone, count), and the sums."""

    lost: dict[int, int]
    next_period: list[tuple[str, int | None, int]]
    moved: int
    issued: int
    debt: int


def play(
    lots: Sequence[Coins],
    movements: Iterable[tuple[int, int]],
    first: int,
    last: int,
    today: int,
    *,
    over: bool,
) -> Outcome:
    """Return the outcome for single movements (day, units), of which several may fall on one day."""
    for lot in lots:
        lot.purse = [f"{lot.name}#{n}" for n in range(lot.count)]
    uncovered = sum(not _take(lots, day) for day in _units(list(movements)))
    lost: Counter[int] = Counter()
    given: list[tuple[str, int | None, int]] = []
    moved = issued = 0
    for lot in lots:
        if lot.gone is not None and lot.gone <= last and lot.gone <= today:
            for _ in lot.purse:
                lost[max(first, lot.gone - 1)] += 1
        elif over:
            for _ in lot.purse:
                lost[last] += 1
            old, fresh = _carried(lot, last)
            moved, issued = moved + old, issued + fresh
            if old + fresh:
                outlives = lot.gone is not None and lot.gone > last + 1
                given.append((lot.name, lot.gone if outlives else None, old + fresh))
    if over:
        lost[last] -= uncovered
        moved -= uncovered
    return Outcome({day: n for day, n in lost.items() if n}, given, moved, issued, uncovered)


def _units(movements: list[tuple[int, int]]) -> list[int]:
    """Return the day of each unit of use that nothing cancels, ascending."""
    standing = sorted(day for day, amount in movements for _ in range(amount))
    homeless = []
    for refund in sorted(day for day, amount in movements for _ in range(-amount)):
        earlier = [day for day in standing if day <= refund]
        if earlier:
            standing.remove(max(earlier))
        else:
            homeless.append(refund)
    for refund in homeless:
        later = [day for day in standing if day > refund]
        if later:
            standing.remove(min(later))
    return standing


def _take(lots: Iterable[Coins], day: int) -> bool:
    chosen: Any = None
    for lot in lots:
        alive = lot.gone is None or day < lot.gone
        if alive and lot.purse and (chosen is None or lot.comes_before(chosen)):
            chosen = lot
    if chosen is None:
        return False
    chosen.purse.pop()
    return True


def _carried(lot: Coins, last: int) -> tuple[int, int]:
    """Return how many of the lot's own tokens go over, and how many fresh ones join them."""
    if lot.gone is not None and lot.gone > last + 1:
        return len(lot.purse), 0
    if lot.limits is None:
        return 0, 0
    least, most = lot.limits
    own, fresh = len(lot.purse), 0
    while own + fresh < least:
        fresh += 1
    while most is not None and own + fresh > most:
        if fresh:
            fresh -= 1
        else:
            own -= 1
    return own, fresh
