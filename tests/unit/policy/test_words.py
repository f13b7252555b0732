"""Amounts and times as people read them."""

import pytest

from gpuledger.policy.words import duration, gpus, gpus_text, hosts_text, hours, moment


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3661, "1 h 1 min"), (90_000, "1 d 1 h"), (-120, "-2 min")],
)
def test_a_duration_has_its_two_largest_units(seconds: int, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(("milli", "text"), [(1000, "1 GPU"), (8000, "8 GPUs"), (1500, "1.500 GPUs")])
def test_gpus_have_decimals_only_where_they_are_not_whole(milli: int, text: str) -> None:
    assert gpus(milli) == text


def test_amounts_and_instants_are_exact() -> None:
    assert hours(3_600_000 * 1234) == "1,234.000 GPU-hours"
    assert moment(1_800_014_400) == "2027-01-15T12:00:00Z"


@pytest.mark.parametrize(
    ("gpus_milli", "text"), [(8000, "8"), (500, "0.500"), (1001, "1.001"), (0, "0"), (-1500, "-1.500")]
)
def test_gpus_have_decimals_only_when_they_need_them(gpus_milli: int, text: str) -> None:
    assert gpus_text(gpus_milli) == text


def test_hosts_of_a_placement_are_named_or_counted() -> None:
    assert hosts_text({"h1": 8000}) == "host h1"
    assert hosts_text({"h3": 8000, "h1": 8000, "h2": 8000}) == "3 hosts (h1 to h3)"
