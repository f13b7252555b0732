"""GPU-time: integers inside, decimal strings at the edge."""

from decimal import Decimal

import pytest

from gpuledger.kernel.amounts import GPU_MS_PER_GPU_HOUR, from_gpu_hours, gpu_hours, people_gpu_hours


def test_one_gpu_hour_is_1000_milli_gpu_times_3600_seconds() -> None:
    assert GPU_MS_PER_GPU_HOUR == 1000 * 3600


@pytest.mark.parametrize(
    ("gpu_ms", "shown"),
    [
        (0, "0.000"),
        (3_600_000, "1.000"),
        (3_521_082_502_800, "978078.473"),
        (1, "0.000"),
        (1_800, "0.000"),  # 0.0005 exactly: half to even goes down to 0
        (5_400, "0.002"),  # 0.0015 exactly: half to even goes up to 2
        (1_801, "0.001"),
        (-3_600_000, "-1.000"),
        (2**63, "2562047788015.216"),
    ],
)
def test_gpu_hours_have_three_decimals_rounded_half_to_even(gpu_ms: int, shown: str) -> None:
    assert str(gpu_hours(gpu_ms)) == shown


@pytest.mark.parametrize(
    ("hours", "gpu_ms"),
    [("1", 3_600_000), ("0.0001", 360), ("0", 0), ("999999999999.5", 3_599_999_999_998_200_000)],
)
def test_gpu_hours_become_whole_gpu_ms(hours: str, gpu_ms: int) -> None:
    assert from_gpu_hours(Decimal(hours)) == gpu_ms


@pytest.mark.parametrize(
    "hours",
    [
        "0.0000001",
        "1." + "0" * 40 + "1",  # rounds to 1 in any arithmetic of 28 digits
        "NaN",
        "Infinity",
    ],
)
def test_hours_that_are_no_whole_gpu_ms_are_refused(hours: str) -> None:
    with pytest.raises(ValueError, match="GPU-hours"):
        from_gpu_hours(Decimal(hours))


def test_people_see_one_decimal_and_thousands_apart() -> None:
    assert people_gpu_hours(3_521_082_502_800) == "978,078.5"


def test_people_never_see_a_nothing_below_zero() -> None:
    assert [people_gpu_hours(amount) for amount in (-1, -180_000, -180_001)] == ["0.0", "0.0", "-0.1"]


@pytest.mark.parametrize("text", ["1e999999999", "1e-999999999", "-1e99999", "1e31"])
def test_a_number_out_of_all_bounds_is_refused_at_once(text: str) -> None:
    with pytest.raises(ValueError, match="out of all bounds"):
        from_gpu_hours(Decimal(text))
