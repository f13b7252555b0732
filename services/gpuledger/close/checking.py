"""What must hold of a close before it is sealed, whoever validates it besides. Pure."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gpuledger.close.document import Document, Line
from gpuledger.close.statement import totals
from gpuledger.ledger.booked import Crossing, Sum
from gpuledger.ledger.charges import GRANT, ROLLOVER, WEIGHTED

CROSS = frozenset({ROLLOVER, GRANT})
"""What may move from one period into another: what rolls over, and what a rollover's minimum grants beyond it."""


class Finding(NamedTuple):
    """Something that does not hold.

    Args:
        what: What was expected, in words.
        place: The account, book or movement that it does not hold for.
        numbers: The amounts that say so.
    """

    what: str
    place: str
    numbers: str

    def told(self) -> str:
        """Return it in one line."""
        return f"{self.what}: {self.place} ({self.numbers})"


def check(document: Document, sums: Iterable[Sum], crossings: Iterable[Crossing]) -> list[Finding]:
    """Return what does not hold of a close: laws 4 and 8, and that it agrees with itself.

    Args:
        document: What the close says.
        sums: What was booked into the period.
        crossings: What moved between the period and others.
    """
    found = [finding for line in document.accounts for finding in _line(line)]
    if (sum_ := totals(document.accounts)) != document.totals:
        found.append(Finding("totals are the sum of the accounts", "all", f"{sum_.weighted} {sum_.physical}"))
    if transferred := document.totals.weighted.transferred:
        found.append(Finding("transfers sum to zero", "all accounts", f"{transferred}"))
    found += _conserved(list(sums), list(crossings))
    found += [
        Finding("the range of a book is gapless", book.book, f"{book.rows} rows")
        for book in document.books
        if book.rows != max(0, book.last_seq - book.first_seq + 1)
    ]
    return found


def _line(line: Line) -> Iterator[Finding]:
    w = line.weighted
    if w.left:
        yield Finding("a settled budget is empty", line.account, f"{w.left} left")
    told = w.granted + w.rolled_in + w.transferred + w.credited - w.charged - w.held - w.expired
    if told != w.left:
        yield Finding("what is left is what the movements leave", line.account, f"{told} is not {w.left}")
    for name in ("charged", "held", "credited", "unallocated"):
        if (amount := getattr(w, name)) < 0:
            yield Finding(f"{name} is not negative", line.account, f"{amount}")


def _conserved(sums: list[Sum], crossings: list[Crossing]) -> Iterator[Finding]:
    """What was booked into the period sums to what came from other periods: nothing comes from nowhere (law 4)."""
    inside = sum(each.amount for each in sums if each.commodity == WEIGHTED)
    across = sum(each.amount for each in crossings)
    if inside != across:
        yield Finding(
            "movements sum to what came from other periods", "all pots", f"{inside} is not {across}"
        )
    for each in crossings:
        if each.code not in CROSS:
            yield Finding("nothing but rollovers moves between periods", each.code, f"{each.amount}")
