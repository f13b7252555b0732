"""The largest-remainder method on cases worked by hand; laws are in the property tests."""

import pytest

from gpuledger.kernel.apportion import apportion


@pytest.mark.parametrize(
    ("total", "weights", "parts"),
    [
        (1000, [1] * 7, [143, 143, 143, 143, 143, 143, 142]),
        (10, [1, 1, 1], [4, 3, 3]),
        (10, [6, 3, 1], [6, 3, 1]),
        (7, [3, 0, 1], [5, 0, 2]),
        (5, [0, 0], [0, 0]),
        (0, [2, 1], [0, 0]),
        (5, [], []),
        (2**60 + 1, [1, 1], [2**59 + 1, 2**59]),
    ],
)
def test_parts_are_exact_shares_and_the_rest_goes_to_the_largest_remainders(
    total: int, weights: list[int], parts: list[int]
) -> None:
    assert apportion(total, weights) == parts


@pytest.mark.parametrize(("total", "weights"), [(-1, [1]), (1, [1, -1])])
def test_negative_input_is_refused(total: int, weights: list[int]) -> None:
    with pytest.raises(ValueError, match="non-negative"):
        apportion(total, weights)
