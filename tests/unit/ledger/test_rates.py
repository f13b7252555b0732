"""The rate card: the weight of the moment, whole numbers, pieces that sum."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.ledger.rates import UNWEIGHTED, Rates, Version

CARD = Rates({"h100": ((100, 2000), (200, 1500)), "b200": ((0, 3000),)})


@pytest.mark.parametrize(
    ("model", "at_s", "weight"),
    [
        ("h100", 99, 1000),
        ("h100", 100, 2000),
        ("h100", 199, 2000),
        ("h100", 200, 1500),
        ("b200", 5, 3000),
        ("a100", 500, 1000),
        (None, 500, 1000),
    ],
)
def test_the_weight_is_that_of_the_moment(model: str | None, at_s: int, weight: int) -> None:
    assert CARD.weight(model, at_s) == weight


def test_time_is_cut_where_the_weight_changes() -> None:
    assert list(CARD.pieces("h100", 50, 250)) == [(50, 100, 1000), (100, 200, 2000), (200, 250, 1500)]
    assert list(CARD.pieces("h100", 100, 200)) == [(100, 200, 2000)]
    assert CARD.weighted("h100", 8000, 50, 250) == 8000 * (50 * 1000 + 100 * 2000 + 50 * 1500)
    assert UNWEIGHTED.weighted("h100", 8000, 50, 250) == 8000 * 200 * 1000


steps = st.dictionaries(st.integers(0, 40), st.integers(0, 5000), max_size=5).map(
    lambda found: tuple(sorted(found.items()))
)


@given(steps=steps, start=st.integers(0, 50), length=st.integers(1, 30), gpus=st.integers(1, 8000))
def test_weighted_time_is_the_sum_of_its_seconds(
    steps: tuple[tuple[int, int], ...], start: int, length: int, gpus: int
) -> None:
    """Against every second looked up by itself."""
    by_second = 0
    for second in range(start, start + length):
        weight = 1000
        for at_s, wanted in steps:
            if at_s <= second:
                weight = wanted
        by_second += gpus * weight
    assert Rates({"m": steps}).weighted("m", gpus, start, start + length) == by_second


@given(steps=steps, start=st.integers(0, 50), lengths=st.tuples(st.integers(1, 30), st.integers(1, 30)))
def test_splitting_time_never_changes_what_it_weighs(
    steps: tuple[tuple[int, int], ...], start: int, lengths: tuple[int, int]
) -> None:
    card, middle, end = Rates({"m": steps}), start + lengths[0], start + sum(lengths)
    parts = card.weighted("m", 7, start, middle) + card.weighted("m", 7, middle, end)
    assert parts == card.weighted("m", 7, start, end)


def test_models_held_together_weigh_each_its_own_part() -> None:
    card = Rates.of([Version(0, 1, {"a100": 500, "h100": 2500}), Version(50, 2, {"a100": 600})])
    both = card.weighted("a100:4000,h100:2000", 6000, 0, 100)
    assert both == card.weighted("a100", 4000, 0, 100) + card.weighted("h100", 2000, 0, 100)
    assert both == 4000 * (50 * 500 + 50 * 600) + 2000 * 100 * 2500


def test_parts_of_a_changed_size_keep_their_proportion_and_sum_to_it() -> None:
    card = Rates.of([Version(0, 1, {"a100": 0, "h100": 1})])
    assert card.weighted("a100:4000,h100:4000", 3001, 0, 1) == 1500
    assert card.weighted("a,b", 3000, 0, 1) == 3000 * 1000
