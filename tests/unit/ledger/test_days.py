"""What postings add to the days of accounts."""

import datetime as dt

from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger.charges import (
    CHARGE,
    CREDIT,
    EXPIRY,
    GRANT,
    HOLD,
    MINIMUM,
    PHYSICAL,
    ROLLOVER,
    SETTLED,
    UNALLOCATED,
    WEIGHTED,
    Booking,
    Key,
    Posting,
    pots,
    together,
    transfer,
)
from gpuledger.ledger.days import Sums, sums

DAY = dt.date(2026, 11, 30)
SHUT = Booking(Calendar(), frozenset({"2026-11"}))


def posting(
    code: str, amount: int, pot: str, commodity: str = WEIGHTED, reason: str | None = None
) -> Posting:
    """A movement of an account's November, booked into December; below zero the other way."""
    debit, credit = pots(Key(code, commodity, "org/a", pot, "r1", DAY), SHUT)
    if amount < 0:
        debit, credit = credit, debit
    said = GRANT if code == MINIMUM else code
    return Posting(said, commodity, abs(amount), debit, credit, "w", "r1", DAY, None, reason)


def test_a_day_has_what_left_the_budget_and_what_entered_the_pot_of_each_code() -> None:
    told = [
        posting(CHARGE, 9, "budget"),
        posting(CHARGE, -5, "budget"),
        posting(HOLD, 6, "budget"),
        posting(CHARGE, 4, "held"),
        posting(CREDIT, 3, "spent"),
        posting(CREDIT, 3, "issue"),
        posting(UNALLOCATED, 7, "free"),
    ]
    assert sums(together(told)) == {
        ("org/a", DAY): Sums(used=9 - 5 + 6 - 3, charged=8, credited=3, unallocated=7)
    }


def test_lots_are_what_came_in_and_expiry_and_rollover_are_no_use() -> None:
    told = [
        posting(GRANT, 9, "issue"),
        posting(EXPIRY, 2, "budget"),
        posting(ROLLOVER, 1, "expired"),
        posting(MINIMUM, 5, "issue", reason=SETTLED),
        posting(MINIMUM, -5, "issue", reason=SETTLED),
    ]
    assert sums(together(told)) == {}
    assert sums(together([posting(GRANT, -4, "issue")])) == {("org/a", DAY): Sums(used=4)}
    assert sums(together([transfer("org/a", "org/b", 3, DAY, SHUT)])) == {("org/a", DAY): Sums(used=3000)}


def test_what_was_posted_back_is_used_and_does_not_stand() -> None:
    assert sums(together([posting(CHARGE, 9, "budget", reason=SETTLED)])) == {("org/a", DAY): Sums(used=9)}


def test_physical_time_is_not_summed_up() -> None:
    assert sums(together([posting(CHARGE, 9, "budget", PHYSICAL)])) == {}


def test_days_add_up() -> None:
    assert Sums(1, 2, 3, 4).plus(Sums(10, 20, 30, 40)) == Sums(11, 22, 33, 44)
