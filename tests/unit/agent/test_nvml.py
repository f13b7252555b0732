"""The bindings of the driver: what they answer, refuse and lose."""

import pytest
from tests.unit.agent.recorded import Bindings, Card, Clock

from gpuledger.agent.driver import Device, DeviceLost, Snapshot, Xid
from gpuledger.agent.nvml import Nvml
from gpuledger.kernel.errors import Unavailable


def opened(*cards: Card) -> tuple[Nvml, Bindings, Clock]:
    clock = Clock()
    bindings = Bindings(list(cards), clock.sleep)
    return Nvml(bindings, clock.sleep), bindings, clock


def test_a_device_says_everything_that_is_sampled() -> None:
    driver, _, _ = opened(Card(pids=(7, 3), remapped=(1, 0, 1, 0), errors=2))
    (device,) = driver.devices()
    assert device == Device(0, "GPU-1", "00000000:18:00.0", 1)
    assert driver.read(device) == Snapshot(
        gpu_util=97,
        memory_bytes=512 << 20,
        power_mw=650_000,
        energy_mj=1_000_000,
        ecc_uncorrected=2,
        remap_pending=True,
        remap_failed=False,
        pids=(3, 7),
    )


def test_what_a_device_does_not_support_is_unknown() -> None:
    none = "NOT_SUPPORTED"
    driver, _, _ = opened(
        Card(util=none, memory=none, power=none, energy=none, errors=none, remapped=none, pids=none)
    )
    assert driver.read(driver.devices()[0]) == Snapshot()


@pytest.mark.parametrize("error", ["GPU_IS_LOST", "RESET_REQUIRED"])
def test_a_device_that_fell_off_the_bus_is_lost_and_the_others_are_read(error: str) -> None:
    driver, _, _ = opened(Card(util=error), Card("GPU-2"))
    first, second = driver.devices()
    with pytest.raises(DeviceLost):
        driver.read(first)
    assert driver.read(second).gpu_util == 97


def test_a_device_that_is_lost_from_the_start_is_not_listed() -> None:
    driver, _, _ = opened(Card("GPU_IS_LOST"), Card("GPU-2"))
    assert [device.uuid for device in driver.devices()] == ["GPU-2"]


@pytest.mark.parametrize("error", ["LIBRARY_NOT_FOUND", "DRIVER_NOT_LOADED"])
def test_a_missing_driver_is_unavailable_and_may_come(error: str) -> None:
    driver, bindings, _ = opened(Card())
    bindings.failing = error
    with pytest.raises(Unavailable, match="driver does not answer") as caught:
        driver.devices()
    assert "nvidia-smi" in caught.value.hint
    bindings.failing = None
    assert len(driver.devices()) == 1


@pytest.mark.parametrize("error", ["UNINITIALIZED", "LIB_RM_VERSION_MISMATCH"])
def test_a_driver_that_is_exchanged_under_the_agent_is_unavailable(error: str) -> None:
    driver, bindings, _ = opened(Card(power=error))
    with pytest.raises(Unavailable):
        driver.read(driver.devices()[0])
    bindings.failing = error
    driver.close()
    assert (bindings.opened, bindings.closed) == (1, 1)


def test_waiting_ends_with_an_error_or_with_the_time() -> None:
    driver, bindings, clock = opened(Card(), Card("GPU-2"))
    devices = driver.devices()
    bindings.events.append((bindings.cards[1], 79))
    began = clock.now()
    assert driver.wait(5) == [Xid(devices[1], 79)]
    assert clock.now() == began
    assert driver.wait(5) == []
    assert (clock.now() - began).total_seconds() == 5


def test_where_no_device_can_report_errors_waiting_is_sleeping() -> None:
    driver, _, clock = opened(Card(can_listen=False))
    driver.devices()
    began = clock.now()
    assert driver.wait(5) == []
    assert (clock.now() - began).total_seconds() == 5


def test_a_device_that_is_lost_while_waiting_makes_the_driver_list_anew() -> None:
    driver, bindings, _ = opened(Card(), Card("GPU-2"))
    driver.devices()
    bindings.events.append("GPU_IS_LOST")
    assert driver.wait(5) == []
    bindings.cards[0].uuid = "GPU_IS_LOST"
    assert [device.uuid for device in driver.devices()] == ["GPU-2"]
    bindings.events.append("UNINITIALIZED")
    with pytest.raises(Unavailable):
        driver.wait(5)


def test_closing_twice_closes_once() -> None:
    driver, bindings, _ = opened(Card())
    driver.devices()
    driver.close()
    driver.close()
    assert bindings.closed == 1


@pytest.mark.nvml
def test_a_real_driver_answers_the_same_questions() -> None:
    driver = Nvml()
    try:
        devices = driver.devices()
    except Unavailable:
        pytest.skip("no NVIDIA driver here; the recorded session stands for it")
    try:
        assert devices
        for device in devices:
            assert device.uuid.startswith("GPU-")
            assert (driver.read(device).memory_bytes or 0) >= 0
        assert driver.wait(0.1) == []
    finally:
        driver.close()
