"""Which runs a tick leaves aside: so few that the rest fits, of each sum the largest first."""

import datetime as dt
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.ledger import overflowing as overflowing_module
from gpuledger.ledger.charges import CHARGE, WEIGHTED, Posting, Pot
from gpuledger.ledger.overflowing import HELD_MAX, overflowing
from gpuledger.ledger.store import Movement

DAY = dt.date(2026, 12, 1)
PERIOD = "2026-12"


def charge(workload: str, amount: int, account: str = "org/a") -> Posting:
    debit, credit = Pot("budget", account, PERIOD), Pot("spent", account, PERIOD)
    return Posting(CHARGE, WEIGHTED, amount, debit, credit, workload, "r", DAY)


def back(workload: str, amount: int, account: str = "org/a") -> Posting:
    """As much less, as a hold that is drained gives to the budget."""
    posting = charge(workload, amount, account)
    return posting._replace(debit=posting.credit, credit=posting.debit)


def spent(account: str, amount: int) -> dict[Movement, int]:
    """As the balances of an account are that has spent so much."""
    return {
        Movement(WEIGHTED, account, PERIOD, "spent", CHARGE): amount,
        Movement(WEIGHTED, account, PERIOD, "budget", CHARGE): -amount,
    }


def test_what_fits_leaves_nobody_aside() -> None:
    assert overflowing([charge("w1", 5), charge("w2", 7)], spent("org/a", HELD_MAX - 12)) == set()


def test_the_largest_is_left_aside_and_the_others_go_on() -> None:
    told = [charge("w1", 5), charge("w2", 8), charge("w3", 4), charge("w4", HELD_MAX, "org/b")]
    assert overflowing(told, spent("org/a", HELD_MAX - 12)) == {"w2"}


def test_an_amount_that_alone_is_too_large_is_left_aside() -> None:
    assert overflowing([charge("w1", HELD_MAX + 1), charge("w2", HELD_MAX)], {}) == {"w1"}


def test_of_a_sum_of_both_signs_goes_what_leads_out_of_bounds() -> None:
    """The largest of them all takes back: without it the sum would be further out."""
    told = [charge("w1", 8), charge("w2", 9), back("w3", 15)]
    assert overflowing(told, spent("org/a", HELD_MAX)) == {"w2"}


def test_what_goes_may_push_an_earlier_sum_out_of_bounds() -> None:
    """``w1`` takes back in the first account as much as the others charge, and is too much for the second."""
    told = [back("w1", 9), charge("w2", 9), charge("w1", 9, "org/b")]
    standing = spent("org/a", HELD_MAX) | spent("org/b", HELD_MAX)
    assert overflowing(told, standing) == {"w1", "w2"}


PARTS = st.tuples(st.sampled_from("uvwxyz"), st.sampled_from(["org/a", "org/b", "org/c"]), st.integers(-6, 6))


@given(parts=st.lists(PARTS, max_size=12), before=st.lists(st.integers(-4, 4), min_size=3, max_size=3))
def test_what_is_left_fits_and_each_that_is_left_aside_had_to_be(
    parts: list[tuple[str, str, int]], before: list[int]
) -> None:
    """Against a sum of everything, in fifths of what a column holds: who is left fits, and with any other would not."""
    fifth = HELD_MAX // 5
    told = [
        charge(name, n * fifth, account) if n > 0 else back(name, -n * fifth, account)
        for name, account, n in parts
        if n
    ]
    accounts = ("org/a", "org/b", "org/c")
    standing = {
        key: amount
        for a, n in zip(accounts, before, strict=True)
        for key, amount in spent(a, n * fifth).items()
    }

    def fits(aside: set[str]) -> bool:
        own = [(account, n) for name, account, n in parts if name not in aside]
        sums = [
            n + sum(m for account, m in own if account == of) for of, n in zip(accounts, before, strict=True)
        ]
        return all(abs(n) <= 5 for n in sums) and all(abs(n) <= 5 for _, n in own)

    aside = overflowing(told, standing)
    every = [set(some) for size in range(7) for some in combinations("uvwxyz", size)]
    assert aside in [some for some in every if fits(some) and not any(fits(some - {name}) for name in some)]
    if fits(set()):
        assert aside == set()


def test_however_many_are_left_aside_each_sum_is_looked_at_a_few_times_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Accounts that are full, and a thousand runs too many: to add everything up for each of them took minutes."""
    accounts = [f"org/{number:03}" for number in range(100)]
    standing = {key: amount for account in accounts for key, amount in spent(account, HELD_MAX).items()}
    told = [charge(f"w{n}", 1 + n % 7, accounts[n % 100]) for n in range(1000)]
    told += [back(f"b{n}", 3, account) for n, account in enumerate(accounts)]
    looks = []
    is_overfull = overflowing_module._Sums.is_overfull
    monkeypatch.setattr(
        overflowing_module._Sums, "is_overfull", lambda *of: looks.append(of) or is_overfull(*of)
    )
    aside = overflowing(told, standing)
    assert len(looks) < 10 * len(told)
    assert all(
        sum(_moved(p) for p in told if p.workload not in aside and p.debit.account == a) <= 0
        for a in accounts
    )
    assert len(aside) > 500


def _moved(posting: Posting) -> int:
    return posting.amount if posting.credit.pot == "spent" else -posting.amount
