"""Which runs a tick leaves aside: so few that the rest fits, of each sum the largest first."""

import datetime as dt

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.ledger.charges import CHARGE, WEIGHTED, Posting, Pot
from gpuledger.ledger.overflowing import HELD_MAX, overflowing
from gpuledger.ledger.store import Movement, movements

DAY = dt.date(2026, 12, 1)
PERIOD = "2026-12"


def charge(workload: str, amount: int, account: str = "org/a") -> Posting:
    debit, credit = Pot("budget", account, PERIOD), Pot("spent", account, PERIOD)
    return Posting(CHARGE, WEIGHTED, amount, debit, credit, workload, "r", DAY)


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


@given(
    amounts=st.lists(
        st.tuples(st.sampled_from(["org/a", "org/b"]), st.integers(1, 3 * HELD_MAX // 2)), max_size=8
    ),
    before=st.integers(0, HELD_MAX),
)
def test_what_is_left_fits_and_each_that_is_left_aside_had_to_be(
    amounts: list[tuple[str, int]], before: int
) -> None:
    told = [charge(f"w{number}", amount, account) for number, (account, amount) in enumerate(amounts)]
    standing = spent("org/a", before)
    aside = overflowing(told, standing)

    def fits(without: set[str]) -> bool:
        sums = dict(standing)
        left = [posting for posting in told if posting.workload not in without]
        for movement, amount in movements(left):
            sums[movement] = sums.get(movement, 0) + amount
        return all(abs(total) <= HELD_MAX for total in sums.values()) and all(
            p.amount <= HELD_MAX for p in left
        )

    assert fits(aside)
    # The smallest of those left aside in an account would not have gone in with the rest.
    for account in ("org/a", "org/b"):
        own = [p for p in told if p.workload in aside and p.debit.account == account]
        if own:
            smallest = min(own, key=lambda posting: posting.amount)
            assert not fits(aside - {str(smallest.workload)})
