"""What must hold of a close: each rule finds its fault, names where, and finds nothing where there is none."""

import msgspec
import pytest
from tests.unit.close.close_said import document, line

from gpuledger.close.checking import check
from gpuledger.close.document import Document
from gpuledger.ledger.booked import Crossing, Sum

SUMS = [Sum("org/a", "2026-11", "gpu_ms_weighted", "expired", "rollover", -30)]
CROSSINGS = [Crossing("rollover", -30)]


def changed(**weighted: int) -> Document:
    """The second line says something else."""
    whole = document()
    first, second = whole.accounts
    amounts = msgspec.structs.replace(second.weighted, **weighted)
    return document(first, msgspec.structs.replace(second, weighted=amounts))


def test_a_close_that_holds() -> None:
    assert check(document(), SUMS, CROSSINGS) == []


@pytest.mark.parametrize(
    ("weighted", "what"),
    [
        ({"left": 1}, "a settled budget is empty"),
        ({"granted": 0}, "what is left is what the movements leave"),
        ({"transferred": 5}, "transfers sum to zero"),
        ({"held": -1}, "held is not negative"),
        ({"charged": -1}, "charged is not negative"),
        ({"credited": -1}, "credited is not negative"),
        ({"unallocated": -1}, "unallocated is not negative"),
    ],
)
def test_a_line_that_does_not_hold_is_found(weighted: dict[str, int], what: str) -> None:
    found = check(changed(**weighted), SUMS, CROSSINGS)
    assert what in {finding.what for finding in found}
    assert {finding.place for finding in found} <= {"org/vision", "all accounts"}
    assert all(finding.numbers for finding in found)


def test_totals_that_are_not_the_sum_are_found() -> None:
    other = msgspec.structs.replace(document(), totals=document(line("org/a")).totals)
    assert [f.what for f in check(other, SUMS, CROSSINGS)] == ["totals are the sum of the accounts"]


def test_an_amount_from_nowhere_is_found() -> None:
    (found,) = check(document(), SUMS, [Crossing("rollover", -29)])
    assert found.told() == "movements sum to what came from other periods: all pots (-30 is not -29)"


def test_nothing_but_rollovers_moves_between_periods() -> None:
    sums = [*SUMS, Sum("org/a", "2026-11", "gpu_ms_weighted", "spent", "charge", 4)]
    (found,) = check(document(), sums, [*CROSSINGS, Crossing("charge", 4)])
    assert (found.what, found.place) == ("nothing but rollovers moves between periods", "charge")


def test_a_row_that_is_missing_from_a_range_is_found() -> None:
    whole = document()
    short = msgspec.structs.replace(whole.books[1], rows=11)
    (found,) = check(msgspec.structs.replace(whole, books=[whole.books[0], short]), SUMS, CROSSINGS)
    assert (found.what, found.place) == ("the range of a book is gapless", "alpha")
