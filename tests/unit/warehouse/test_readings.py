from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.warehouse.readings import Impact, Owed, Sums, cluster_impact, impact, ratio

HOURS = [Owed(350, 300), Owed(120, 120), Owed(0, 0), Owed(350, 450)]
"""E = 350 in each hour; D = 500, 120, 0, 600, so W = min(E, D); L = 300, 120, 0, 450."""


def sums(**amounts: int | None) -> Sums:
    none: dict[str, int | None] = dict.fromkeys(Sums.__dataclass_fields__, 0)
    return Sums(**{**none, **amounts})  # type: ignore[arg-type]


def test_the_worked_example_of_the_design() -> None:
    assert impact(HOURS) == Impact(Decimal("1.0610"), Decimal("1.0000"), Decimal("0.9390"))


def test_owed_is_the_smaller_of_entitlement_and_demand_in_the_worked_example() -> None:
    assert [row.owed_gpu_ms for row in HOURS] == [min(350, demand) for demand in (500, 120, 0, 600)]


@pytest.mark.parametrize("rows", [[], [Owed(0, 0)], [Owed(0, 500)]])
def test_nothing_owed_is_no_data(rows: list[Owed]) -> None:
    assert impact(rows) == Impact(None, None, None)
    assert cluster_impact([rows]) == Impact(None, None, None)


def test_one_accounts_surplus_never_covers_anothers_shortfall() -> None:
    rich, poor = [Owed(100, 300)], [Owed(100, 50)]
    assert cluster_impact([rich, poor]).window == Decimal("0.7500")
    assert cluster_impact([rich, poor]).raw == Decimal("1.7500")


def test_a_cluster_of_one_account_reads_like_the_account() -> None:
    assert cluster_impact([HOURS]) == impact(HOURS)


@pytest.mark.parametrize(
    ("numerator", "denominator", "expected"),
    [
        (1, 3, "0.3333"),
        (2, 3, "0.6667"),
        (1, 20_000, "0.0000"),  # exactly half a place: to the even neighbour
        (3, 20_000, "0.0002"),
        (0, 7, "0.0000"),
        (7, 7, "1.0000"),
    ],
)
def test_ratios_have_four_decimals_half_to_even(numerator: int, denominator: int, expected: str) -> None:
    assert str(ratio(numerator, denominator)) == expected


@pytest.mark.parametrize("pair", [(1, 0), (None, 5), (5, None), (0, 0)])
def test_a_missing_side_or_a_zero_denominator_is_no_data(pair: tuple[int | None, int | None]) -> None:
    assert ratio(*pair) is None


@given(st.integers(0, 10**18), st.integers(1, 10**18))
def test_a_ratio_is_the_nearest_of_its_places(numerator: int, denominator: int) -> None:
    found = ratio(numerator, denominator)
    assert found is not None
    assert abs(Fraction(found) - Fraction(numerator, denominator)) <= Fraction(1, 20_000)


def test_the_four_layers_of_a_day() -> None:
    day = sums(
        installed_gpu_ms=1000, unhealthy_gpu_ms=100, unhealthy_occupied_gpu_ms=50, maintenance_gpu_ms=100,
        allocated_gpu_ms=500, unallocated_gpu_ms=200, overhead_gpu_ms=10, sampled_gpu_ms=350, used_gpu_ms=280,
    )  # fmt: skip
    assert day.healthy_gpu_ms == 750
    assert day.availability() == Decimal("0.7500")
    assert day.availability_outside_maintenance() == Decimal("0.8333")
    assert day.occupancy() == Decimal("0.8750")
    assert day.occupancy_with_overhead() == Decimal("0.8875")
    assert day.utilisation() == Decimal("0.8000")
    assert day.coverage() == Decimal("0.5000")


def test_a_full_cluster_with_an_unhealthy_gpu_in_use_is_at_one_not_above() -> None:
    day = sums(installed_gpu_ms=100, unhealthy_occupied_gpu_ms=10, allocated_gpu_ms=100)
    assert day.occupancy() == Decimal("1.0000")
    assert day.availability() == Decimal("0.9000")


def test_without_inventory_only_utilisation_is_known() -> None:
    day = sums(
        installed_gpu_ms=None, unhealthy_gpu_ms=None, unhealthy_occupied_gpu_ms=None, maintenance_gpu_ms=None,
        overhead_gpu_ms=None, allocated_gpu_ms=100, sampled_gpu_ms=100, used_gpu_ms=25,
    )  # fmt: skip
    assert day.availability() is None
    assert day.availability_outside_maintenance() is None
    assert day.occupancy() is None
    assert day.occupancy_with_overhead() is None
    assert day.utilisation() == Decimal("0.2500")
    assert day.coverage() == Decimal("1.0000")
