"""The estimate of Kaplan and Meier, against values that were computed by hand and published."""

import random
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.kernel.survival import Lengths

TREATED = Lengths(
    Counter({6: 3, 7: 1, 10: 1, 13: 1, 16: 1, 22: 1, 23: 1}),
    Counter({6: 1, 9: 1, 10: 1, 11: 1, 17: 1, 19: 1, 20: 1, 25: 1, 32: 2, 34: 1, 35: 1}),
)
"""Weeks in remission of the 21 leukaemia patients who were given 6-MP (Freireich and others, Blood 21, 1963)."""

UNTREATED = Lengths(Counter([1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]))
"""The 21 who were given a placebo: each relapse was seen."""


def test_the_published_example() -> None:
    """Kleinbaum and Klein, Survival Analysis, chapter 2: .8571 .8067 .7529 .6902 .6275 .5378 .4482."""
    steps = [(s.after, f"{s.surviving / s.of:.4f}") for s in TREATED.curve()]
    assert steps == [
        (6, "0.8571"), (7, "0.8067"), (10, "0.7529"), (13, "0.6902"), (16, "0.6275"), (22, "0.5378"), (23, "0.4482"),
    ]  # fmt: skip


def test_published_medians() -> None:
    """23 weeks with the treatment, 8 without (the same chapter)."""
    assert TREATED.quantile(500) == 23
    assert UNTREATED.quantile(500) == 8


def test_what_was_not_reached_is_unknown() -> None:
    assert TREATED.quantile(900) is None
    assert TREATED.longest == 35
    assert TREATED.count == 21


def test_nothing_seen_is_no_data() -> None:
    nothing = Lengths()
    assert nothing.quantiles(500, 900, 990) == [None, None, None]
    assert nothing.longest is None


def test_without_anything_lost_from_sight_it_is_the_plain_quantile() -> None:
    tenth = Lengths(Counter(range(1, 11)))
    assert tenth.quantiles(100, 101, 500, 900, 990) == [1, 2, 5, 9, 10]


@pytest.mark.parametrize("permille", [500, 900])
def test_leaving_out_who_still_waits_would_flatter(permille: int) -> None:
    starts, waiting = Counter([10] * 80 + [20] * 15), Counter([1000] * 105)
    left_out = Lengths(starts).quantile(permille)
    with_them = Lengths(starts, waiting).quantile(permille)
    assert left_out is not None
    assert with_them is None  # fewer than half of the 200 were ever seen to start


def test_several_seeds_are_pooled() -> None:
    pooled = Lengths.merged([TREATED, UNTREATED])
    assert pooled.count == 42
    assert pooled.ended[22] == 2
    assert TREATED.count == 21


def test_the_interval_of_a_quantile_holds_it_and_narrows_with_more_seeds() -> None:
    one = Lengths(Counter(range(1, 101)))
    many = Lengths(Counter(dict.fromkeys(range(1, 101), 25)))
    widths = []
    for lengths in (one, many):
        low, high = lengths.interval(900, random.Random("1/bootstrap"), draws=200)
        assert low is not None
        assert high is not None
        assert low <= 90 <= high
        widths.append(high - low)
    assert widths[1] < widths[0] / 2  # a fifth, give or take
    assert one.interval(900, random.Random("x"), draws=50) == one.interval(900, random.Random("x"), draws=50)


def test_the_interval_of_what_may_not_be_reached_is_open() -> None:
    half = Lengths(Counter({10: 50}), Counter({1000: 50}))
    assert half.interval(500, random.Random("1"), draws=100) == (10, None)
    assert Lengths().interval(500, random.Random("1")) == (None, None)


def test_who_was_there_before_counts_from_then_on() -> None:
    """Of two that were seen from the beginning one ends after 10; the third, seen from 20 on, lasts to 40."""
    lengths = Lengths()
    lengths.add(10, ended=True)
    lengths.add(30, ended=True)
    lengths.add(40, ended=True, entered=20)
    steps = [(step.after, Fraction(step.surviving, step.of)) for step in lengths.curve()]
    assert steps == [(10, Fraction(1, 2)), (30, Fraction(1, 4)), (40, Fraction(0))]


def test_who_is_starved_is_not_forgotten_because_nobody_else_is_left() -> None:
    """Three started within the hour; four have waited for a week already, and still do."""
    lengths = Lengths(Counter({600: 1, 1_200: 1, 3_600: 1}))
    for _ in range(4):
        lengths.add(1_000_000, ended=False, entered=600_000)
    assert lengths.quantiles(500, 900) == [1_200, None]
    only_they = Lengths(unended=Counter({1_000_000: 4}), late=Counter({(600_000, 1_000_000, False): 4}))
    assert (only_they.count, only_they.quantile(500)) == (4, None)


def test_an_interval_draws_who_was_there_before_as_one() -> None:
    lengths = Lengths(Counter({10: 30}))
    for _ in range(10):
        lengths.add(500, ended=True, entered=400)
    assert lengths.interval(900, random.Random("1"), draws=50) == (None, None)  # all that is seen ends at 10
    assert lengths.ended.total() == 40


SEEN = st.tuples(st.integers(0, 12), st.integers(0, 12), st.booleans())


@st.composite
def some_lengths(draw: st.DrawFn) -> Lengths:
    lengths = Lengths()
    for entered, more, ended in draw(st.lists(SEEN, max_size=16)):
        lengths.add(entered + more, ended=ended, entered=entered if draw(st.booleans()) else 0)
    return lengths


LENGTHS = some_lengths()


@given(LENGTHS)
def test_each_step_is_the_product_of_the_definition(lengths: Lengths) -> None:
    seen = [each for each, count in lengths.late.items() for _ in range(count)]
    for ended, counted in ((True, lengths.ended), (False, lengths.unended)):
        for length, count in counted.items():
            late = sum(n for (_, of, over), n in lengths.late.items() if (of, over) == (length, ended))
            seen += [(0, length, ended)] * (count - late)
    product, expected = Fraction(1), []
    for at in range(30):
        at_risk = sum(entered <= at <= length for entered, length, _ in seen)
        over = sum(length == at and ended for _, length, ended in seen)
        if over and over == at_risk and any(entered > at for entered, _, _ in seen):
            break
        if over:
            product *= 1 - Fraction(over, at_risk)
            expected.append((at, product))
    assert [(step.after, Fraction(step.surviving, step.of)) for step in lengths.curve()] == expected


@given(LENGTHS, st.lists(st.integers(1, 1000), min_size=1, max_size=4).map(sorted))
def test_a_quantile_is_the_first_step_that_comes_so_far(lengths: Lengths, permilles: list[int]) -> None:
    steps = [(s.after, 1 - Fraction(s.surviving, s.of)) for s in lengths.curve()]
    expected = [next((at for at, over in steps if over >= Fraction(p, 1000)), None) for p in permilles]
    assert lengths.quantiles(*permilles) == expected
