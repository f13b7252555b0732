"""The table of halves, against fifty digits; and the tables that other schedulers publish of their decay."""

from decimal import Decimal, localcontext

import pytest

from gpuledger.policy.decay import ONE, STEPS, decayed, table

DAY = 86_400
WEEK = 7 * DAY


def test_every_entry_is_the_nearest_unit() -> None:
    with localcontext(prec=50):
        for step in (0, 1, 2, 3, 1023, 32_768, 40_000, STEPS - 1):
            exact = ONE * Decimal(2) ** (Decimal(-step) / STEPS)
            assert abs(table()[step] - exact) <= Decimal("0.5000001")
    assert len(table()) == STEPS
    assert list(table()) == sorted(table(), reverse=True)


def test_whole_half_lives_halve_exactly() -> None:
    assert [decayed(weeks * WEEK, WEEK) for weeks in range(4)] == [ONE, ONE >> 1, ONE >> 2, ONE >> 3]
    assert decayed(40 * WEEK, WEEK) == 0


@pytest.mark.parametrize(
    ("sample_s", "half_life_s", "alpha"), [(300, WEEK, "0.00034376"), (300, 600, "0.29289")]
)
def test_the_weight_of_a_sample_is_the_one_that_kueue_publishes(
    sample_s: int, half_life_s: int, alpha: str
) -> None:
    """Kueue admission fair sharing: alpha = 1 - 0.5^(sample / half-life) (Q17, Q18)."""
    found = Decimal(ONE - decayed(sample_s, half_life_s)) / ONE
    assert abs(found - Decimal(alpha)) < Decimal("0.000006")
    if half_life_s == 600:  # an entry penalty of 4 CPU
        assert round(4 * found, 4) == Decimal("1.1716")


def test_a_priority_goes_as_htcondor_says() -> None:
    """RUP 10 and no jobs: 5 and 2.5 after one and two half-lives (H4)."""
    assert [10 * decayed(days * DAY, DAY) / ONE for days in (1, 2)] == [5.0, 2.5]
