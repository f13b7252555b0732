"""A slice is an exact part of its device, and slices never sum to more than it."""

import pytest

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.slices import slice_milli


@pytest.mark.parametrize(
    ("profile", "model", "milli"),
    [
        ("1g.10gb", "NVIDIA H100 80GB HBM3", 142),
        ("1g.10gb+me", "NVIDIA H100 80GB HBM3", 142),
        ("3g.40gb", "NVIDIA H100 80GB HBM3", 428),
        ("7g.80gb", "NVIDIA H100 80GB HBM3", 1000),
        ("MIG 2g.20gb", "NVIDIA A100-SXM4-80GB", 285),
        ("1c.3g.40gb", "NVIDIA H100 80GB HBM3", 142),
        ("1g.6gb", "NVIDIA A30", 250),
        ("4g.24gb", "NVIDIA A30", 1000),
    ],
)
def test_the_part_that_a_profile_is(profile: str, model: str, milli: int) -> None:
    assert slice_milli(profile, model) == milli


@pytest.mark.parametrize(
    ("profile", "model"), [("8g.80gb", "H100"), ("5g.24gb", "NVIDIA A30"), ("half", ""), ("", "")]
)
def test_a_profile_that_is_none_is_not_guessed_at(profile: str, model: str) -> None:
    with pytest.raises(BadRecord, match="GPU_I_PROFILE") as caught:
        slice_milli(profile, model)
    assert caught.value.code == "unknown-profile"


def test_slices_never_sum_to_more_than_the_device() -> None:
    for layout in (["1g.10gb"] * 7, ["3g.40gb", "4g.40gb"], ["2g.20gb", "2g.20gb", "3g.40gb"]):
        assert sum(slice_milli(profile, "H100") for profile in layout) <= 1000
