"""Thresholds are compared in whole numbers, and an inner account is all that is below it."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.notify.thresholds import Spent, by_node, reached


def of(spent: int, given_: int, account: str = "org/a") -> Spent:
    return Spent("alpha", "2026-12", account, spent, given_)


@pytest.mark.parametrize(
    ("spent", "expected"),
    [
        (0, []),
        (49_999, []),
        (50_000, [50]),
        (79_999, [50]),
        (80_000, [50, 80]),
        (99_999, [50, 80]),
        (100_000, [50, 80, 100]),
        (250_000, [50, 80, 100]),
        (-1, []),
    ],
)
def test_a_threshold_is_reached_at_it_and_not_before(spent: int, expected: list[int]) -> None:
    assert reached(of(spent, 100_000)) == expected


@pytest.mark.parametrize("given_", [0, -5])
def test_who_was_given_nothing_has_no_part_of_it(given_: int) -> None:
    assert reached(of(10, given_)) == []


def test_they_are_told_in_order_however_the_file_has_them() -> None:
    assert reached(of(90, 100), (90, 10, 50)) == [10, 50, 90]


def test_an_amount_that_no_float_holds_is_compared_exactly() -> None:
    most = 9 * 10**18 + 1
    assert reached(of(most // 2, most), (50,)) == []
    assert reached(of(most // 2 + 1, most), (50,)) == [50]


@given(
    st.integers(-(10**18), 10**18),
    st.integers(1, 10**18),
    st.lists(st.integers(1, 1000), min_size=1, max_size=5, unique=True),
)
def test_it_is_what_fractions_say(spent: int, given_: int, thresholds: list[int]) -> None:
    expected = [each for each in sorted(thresholds) if Fraction(spent, given_) >= Fraction(each, 100)]
    assert reached(of(spent, given_), thresholds) == expected


def test_an_inner_account_is_the_sum_of_itself_and_all_below_it() -> None:
    leaves = [of(1, 10, "org"), of(2, 20, "org/a/x"), of(4, 40, "org/a/y"), of(8, 80, "org/ab")]
    assert {node.account: (node.spent_gpu_ms, node.given_gpu_ms) for node in by_node(leaves)} == {
        "org": (15, 150),
        "org/a": (6, 60),
        "org/a/x": (2, 20),
        "org/a/y": (4, 40),
        "org/ab": (8, 80),
    }


def test_clusters_and_periods_are_not_summed() -> None:
    leaves = [of(1, 10), of(2, 20)._replace(cluster="beta"), of(4, 40)._replace(period="2026-11")]
    assert len(by_node(leaves)) == 6
