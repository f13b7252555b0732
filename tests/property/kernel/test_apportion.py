"""Laws of dividing an integer."""

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.kernel.apportion import apportion

totals = st.integers(0, 2**62)
weight_lists = st.lists(st.integers(0, 2**40), min_size=1, max_size=12)


@given(totals, weight_lists)
def test_parts_sum_to_the_total_unless_all_weights_are_zero(total: int, weights: list[int]) -> None:
    assert sum(apportion(total, weights)) == (total if any(weights) else 0)


@given(totals, weight_lists)
def test_each_part_is_its_exact_share_rounded_down_or_up(total: int, weights: list[int]) -> None:
    whole = sum(weights) or 1
    for part, weight in zip(apportion(total, weights), weights, strict=True):
        assert (part - 1) * whole < total * weight < (part + 1) * whole or part * whole == total * weight


@given(totals, weight_lists, st.integers(1, 1000))
def test_the_unit_of_the_weights_does_not_matter(total: int, weights: list[int], unit: int) -> None:
    assert apportion(total, [weight * unit for weight in weights]) == apportion(total, weights)


@given(totals, weight_lists)
def test_a_larger_weight_never_gets_less(total: int, weights: list[int]) -> None:
    parts = apportion(total, weights)
    ordered = [part for _, part in sorted(zip(weights, parts, strict=True))]
    assert ordered == sorted(ordered)
