from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.policy.explain import ratio_millionths, ratio_text, ratios_millionths


@pytest.mark.parametrize(
    ("used", "entitled", "text"),
    [
        (0, 5, "0.000000"),
        (1, 3, "0.333333"),
        (2, 3, "0.666667"),
        (1, 2_000_000, "0.000000"),
        (3, 2_000_000, "0.000002"),
        (10**40 + 1, 10**40, "1.000000"),
        (123, 1, "123.000000"),
        (5, 0, None),
    ],
)
def test_a_ratio_has_six_decimals_half_to_even(used: int, entitled: int, text: str | None) -> None:
    assert ratio_text(used, entitled) == text


@given(st.integers(0, 10**30), st.integers(1, 10**30))
def test_a_ratio_is_rounded_exactly(used: int, entitled: int) -> None:
    assert ratio_millionths(used, entitled) == round(Fraction(used, entitled) * 10**6)


@given(st.lists(st.integers(0, 10**20)), st.integers(1, 10**9), st.integers(0, 10**9))
def test_many_ratios_are_rounded_as_one(used: list[int], scale: int, entitled: int) -> None:
    assert ratios_millionths(used, scale, entitled) == [
        ratio_millionths(one * scale, entitled) for one in used
    ]


def test_halves_of_a_millionth_are_rounded_to_even() -> None:
    assert ratios_millionths(range(8), 1, 2_000_000) == [0, 0, 1, 2, 2, 2, 3, 4]
