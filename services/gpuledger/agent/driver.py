"""What the agent asks of a driver of devices."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from gpuledger.kernel.errors import Unavailable


class DeviceLost(Unavailable):
    """The driver is there, and cannot reach this device."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device as the driver lists it.

    Args:
        index: Its number, which may change when the driver is loaded anew.
        uuid: Its name, which does not.
        pci: Where it sits, such as ``00000000:9B:00.0``.
        minor: The number of its file in ``/dev``, by which the driver of Kubernetes names it; where it is known.
    """

    index: int
    uuid: str
    pci: str
    minor: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a device said at one moment; None is what it does not support.

    Args:
        gpu_util: Percent of the time just past in which some kernel ran.
        gr_engine_active: Percent of the time since the reading before in which an engine worked; likewise
            sm_active of its SMs, and tensor_active of their tensor cores.
        memory_bytes: Memory in use.
        power_mw: Power.
        energy_mj: Energy since the driver was loaded.
        ecc_uncorrected: Errors since the driver was loaded.
        remap_pending: Whether rows wait for a reset to be remapped.
        remap_failed: Whether rows could not be.
        pids: Processes that compute on it.
    """

    gpu_util: int | None = None
    gr_engine_active: float | None = None
    sm_active: float | None = None
    tensor_active: float | None = None
    memory_bytes: int | None = None
    power_mw: int | None = None
    energy_mj: int | None = None
    ecc_uncorrected: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    pids: tuple[int, ...] = ()


class Xid(NamedTuple):
    """An error that the driver reported just now."""

    device: Device
    code: int


class Driver(Protocol):
    """Lists devices, reads them, and wakes up for errors."""

    def devices(self) -> Sequence[Device]:
        """Return the devices there are; the first call, and the first after ``close``, opens the driver.

        Raises:
            Unavailable: When there is no driver, or it does not answer.
        """
        ...

    def read(self, device: Device) -> Snapshot:
        """Return what a device says now.

        Raises:
            DeviceLost: When it cannot be reached.
            Unavailable: When the driver does not answer.
        """
        ...

    def wait(self, seconds: float) -> Sequence[Xid]:
        """Return as soon as a device reports errors, or with none after the time.

        Raises:
            Unavailable: When the driver does not answer.
        """
        ...

    def close(self) -> None:
        """Release the driver. It may be gone already."""
        ...
