"""Chance that hangs on names."""

import pytest

from gpuledger.simulator.chance import happens, length_s, stream


def test_a_name_has_one_stream() -> None:
    assert stream("1/x").random() == stream("1/x").random()
    assert stream("1/x").random() != stream("1/y").random()


@pytest.mark.parametrize(("permille", "least", "most"), [(0, 0, 0), (250, 220, 280), (1000, 1000, 1000)])
def test_what_happens_to_so_many_of_a_thousand(permille: int, least: int, most: int) -> None:
    assert least <= sum(happens(f"name {n}", permille) for n in range(1000)) <= most


def test_whoever_it_happens_to_rarely_it_happens_to_often() -> None:
    rarely, often = ({n for n in range(500) if happens(f"name {n}", permille)} for permille in (100, 600))
    assert rarely < often


def test_lengths_have_the_mean_that_is_asked_for_and_are_a_second_at_least() -> None:
    rng = stream("lengths")
    assert sum(length_s(rng, 3600) for _ in range(4000)) / 4000 == pytest.approx(3600, rel=0.06)
    assert {length_s(rng, 0) for _ in range(9)} == {1}
