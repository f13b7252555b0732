"""A slice is an exact part of its device, the same in every source, and slices never sum to more than it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.sources.kubernetes.quantities import gpus_milli
from gpuledger.sources.slices import PROFILES, QUARTERS, SEVENTHS, Part, apportioned, part_of
from gpuledger.sources.slurm.tres import Tres

BY_MODEL = {"1g.24gb"}


@pytest.mark.parametrize(
    ("profile", "model", "part"),
    [
        ("1g.10gb", "NVIDIA H100 80GB HBM3", (1, 7)),
        ("1g.10gb+me", "", (1, 7)),
        ("1g.10gb.me", "", (1, 7)),
        ("1g.24gb+me.all", "NVIDIA RTX PRO 6000 Blackwell Server Edition", (1, 4)),
        ("1G.24GB-ME", "NVIDIA-RTX-PRO-6000-Blackwell-Workstation-Edition", (1, 4)),
        ("1g.24gb", "nvidia_gh200_480gb", (1, 7)),
        ("MIG 2g.20gb", "NVIDIA A100-SXM4-80GB", (2, 7)),
        ("1c.3g.40gb", "NVIDIA H100 80GB HBM3", (1, 7)),
        ("7g.80gb", "", (7, 7)),
        ("4g.24gb", "NVIDIA A30", (4, 4)),
    ],
)
def test_the_part_that_a_profile_is(profile: str, model: str, part: tuple[int, int]) -> None:
    assert part_of(profile, model) == part


@pytest.mark.parametrize(
    "profile", ["8g.80gb", "1g.24gb", "1g.999gb", "4c.3g.40gb", "half", "1g", "", "1g.10gb+x"]
)
def test_a_profile_that_is_not_known_is_not_guessed_at(profile: str) -> None:
    assert part_of(profile) is None


@pytest.mark.parametrize("profile", PROFILES)
def test_every_source_gives_a_profile_the_same_size(profile: str) -> None:
    if profile in BY_MODEL:
        assert part_of(profile) is None
        return
    part = part_of(profile)
    assert part is not None
    for count in (1, part.whole // part.slices, part.whole):
        found = Tres().text("t", f"gres/gpu:a100_{profile}={count}")
        assert found is not None
        assert found.milli == gpus_milli({f"nvidia.com/mig-{profile}": count}) == part.milli(count)
    assert part.milli(part.whole // part.slices) <= 1000


def test_sevenths_are_142_and_six_times_143() -> None:
    assert apportioned([Part(1, SEVENTHS)] * 7) == [142, 143, 143, 143, 143, 143, 143]
    assert apportioned([Part(3, SEVENTHS), Part(4, SEVENTHS)]) == [428, 572]
    assert apportioned([]) == []


@pytest.mark.parametrize(
    "parts", [[Part(4, SEVENTHS), Part(4, SEVENTHS)], [Part(1, SEVENTHS), Part(1, QUARTERS)]]
)
def test_slices_that_cannot_be_of_one_device_are_refused(parts: list[Part]) -> None:
    with pytest.raises(ValueError, match="no slices of one device"):
        apportioned(parts)


@given(st.sampled_from([SEVENTHS, QUARTERS]), st.lists(st.integers(1, 7), max_size=7))
def test_slices_of_a_device_sum_to_it_to_the_unit(whole: int, sizes: list[int]) -> None:
    while sum(sizes) > whole:
        sizes.pop()
    amounts = apportioned([Part(size, whole) for size in sizes])
    assert sum(amounts) == 1000 * sum(sizes) // whole
    assert all(0 <= amount - 1000 * size // whole <= 1 for amount, size in zip(amounts, sizes, strict=True))
