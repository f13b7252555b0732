"""Shares of a device are differences of two samples, where the device counts, and never bridge one that failed."""

import pytest
from tests.unit.agent.recorded import GPU_1, Bindings, Card, Clock, NVMLError

from gpuledger.agent.gpm import UNKNOWN, Gpm
from gpuledger.agent.nvml import Nvml

BUSY = (91.3, 40.0, 12.5)


def counting(card: Card) -> tuple[Gpm, Bindings]:
    bindings = Bindings([card], Clock().sleep)
    return Gpm(bindings), bindings


def test_the_first_sample_begins_a_difference_and_each_later_one_ends_it() -> None:
    card = Card(shares=(1.0, 1.0, 1.0))
    gpm, _ = counting(card)
    assert gpm.shares(GPU_1, card) == UNKNOWN
    for shares in (BUSY, (0.0, 0.0, 0.0), (100.0, None, 3.0)):
        card.shares = shares
        assert gpm.shares(GPU_1, card) == shares


def test_a_device_that_does_not_count_is_asked_for_no_sample() -> None:
    card = Card()
    gpm, bindings = counting(card)
    assert [gpm.shares(GPU_1, card) for _ in range(3)] == [UNKNOWN] * 3
    assert bindings.held == 0


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.1, 100.1])
def test_a_share_that_cannot_be_was_not_measured(value: float) -> None:
    card = Card(shares=(value, 2.0, 3.0))
    gpm, _ = counting(card)
    gpm.shares(GPU_1, card)
    assert gpm.shares(GPU_1, card) == (None, 2.0, 3.0)


def test_a_sample_that_fails_begins_no_difference() -> None:
    card = Card(shares=BUSY)
    gpm, _ = counting(card)
    gpm.shares(GPU_1, card)
    card.shares = "NOT_SUPPORTED"
    with pytest.raises(NVMLError):
        gpm.shares(GPU_1, card)
    card.shares = BUSY
    assert gpm.shares(GPU_1, card) == UNKNOWN
    assert gpm.shares(GPU_1, card) == BUSY


def test_the_agent_holds_two_samples_a_device_and_gives_them_back() -> None:
    clock = Clock()
    bindings = Bindings([Card(shares=BUSY), Card("GPU-2")], clock.sleep)
    driver = Nvml(bindings, clock.sleep)
    first, second = driver.devices()
    for _ in range(5):
        said, other = driver.read(first), driver.read(second)
    assert (said.gr_engine_active, said.sm_active, said.tensor_active) == BUSY
    assert (other.gr_engine_active, other.gpu_util) == (None, 97)
    assert bindings.held == 2
    driver.close()
    assert bindings.held == 0
