"""The NVIDIA driver, through its own bindings. The one module that imports them."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from gpuledger.agent.driver import Device, DeviceLost, Snapshot, Xid
from gpuledger.agent.gpm import UNKNOWN, Gpm
from gpuledger.kernel.errors import Unavailable

Value = TypeVar("Value")


class Nvml:
    """Devices as NVML sees them.

    Args:
        bindings: The module ``pynvml``; another one that answers the same calls in tests.
        sleep: Waits when there is nothing to wake up for.
    """

    def __init__(self, bindings: Any = None, sleep: Callable[[float], None] = time.sleep) -> None:  # noqa: ANN401 - it has no types
        self._nvml = _pynvml() if bindings is None else bindings
        self._sleep = sleep
        self._open = False
        self._events: Any = None
        self._handles: dict[Device, Any] = {}
        self._gpm = Gpm(self._nvml)

    def devices(self) -> Sequence[Device]:
        """Return the devices there are; see ``Driver.devices``."""
        nvml = self._nvml
        try:
            if not self._open:
                nvml.nvmlInit()
                self._open = True
            if not self._handles:
                self._list()
        except nvml.NVMLError as error:
            raise self._gone(error) from error
        return list(self._handles)

    def read(self, device: Device) -> Snapshot:
        """Return what a device says now; see ``Driver.read``."""
        nvml, handle = self._nvml, self._handles[device]
        utilisation = self._ask(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
        remapped = self._ask(lambda: nvml.nvmlDeviceGetRemappedRows(handle))
        processes = self._ask(lambda: nvml.nvmlDeviceGetComputeRunningProcesses(handle))
        engine, sms, tensor = self._ask(lambda: self._gpm.shares(device, handle)) or UNKNOWN
        return Snapshot(
            gpu_util=utilisation,
            gr_engine_active=engine,
            sm_active=sms,
            tensor_active=tensor,
            memory_bytes=self._ask(lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used),
            power_mw=self._ask(lambda: nvml.nvmlDeviceGetPowerUsage(handle)),
            energy_mj=self._ask(lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle)),
            ecc_uncorrected=self._ask(
                lambda: nvml.nvmlDeviceGetTotalEccErrors(
                    handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
                )
            ),
            remap_pending=None if remapped is None else bool(remapped[2]),
            remap_failed=None if remapped is None else bool(remapped[3]),
            pids=tuple(sorted(process.pid for process in processes or ())),
        )

    def wait(self, seconds: float) -> Sequence[Xid]:
        """Return as soon as a device reports an error; see ``Driver.wait``."""
        nvml = self._nvml
        if self._events is None:
            self._sleep(seconds)
            return []
        try:
            event = nvml.nvmlEventSetWait_v2(self._events, int(seconds * 1000))
        except nvml.NVMLError as error:
            if error.value == nvml.NVML_ERROR_TIMEOUT:
                return []
            if error.value == nvml.NVML_ERROR_GPU_IS_LOST:
                self._events = None  # the set is of no more use; the devices are listed anew without that one
                self._handles.clear()
                self._sleep(seconds)
                return []
            raise self._gone(error) from error
        uuid = self._ask(lambda: nvml.nvmlDeviceGetUUID(event.device))
        device = next((device for device in self._handles if device.uuid == uuid), None)
        return [] if device is None else [Xid(device, int(event.eventData))]

    def close(self) -> None:
        """Release the driver."""
        nvml, was_open, events = self._nvml, self._open, self._events
        self._open, self._events = False, None
        self._handles.clear()
        try:
            self._gpm.close()
            if events is not None:
                nvml.nvmlEventSetFree(events)
            if was_open:
                nvml.nvmlShutdown()
        except nvml.NVMLError:
            return  # it went before us

    def _list(self) -> None:
        nvml = self._nvml
        for index in range(nvml.nvmlDeviceGetCount()):
            try:
                handle = nvml.nvmlDeviceGetHandleByIndex(index)
                uuid, pci = nvml.nvmlDeviceGetUUID(handle), nvml.nvmlDeviceGetPciInfo(handle).busId
                minor = self._ask(partial(nvml.nvmlDeviceGetMinorNumber, handle))
            except DeviceLost:
                continue
            except nvml.NVMLError as error:
                if error.value != nvml.NVML_ERROR_GPU_IS_LOST:
                    raise
                continue  # of one that cannot be reached not even the name can be had
            self._handles[Device(index, _text(uuid), _text(pci), minor)] = handle
        self._listen()

    def _listen(self) -> None:
        """Ask to be woken up for errors; devices that cannot report them are read all the same."""
        nvml = self._nvml
        events = nvml.nvmlEventSetCreate()
        heard = False
        for handle in self._handles.values():
            try:
                nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, events)
                heard = True
            except nvml.NVMLError as error:
                if error.value != nvml.NVML_ERROR_NOT_SUPPORTED:
                    raise
        if heard:
            self._events = events
        else:
            nvml.nvmlEventSetFree(events)

    def _ask(self, question: Callable[[], Value]) -> Value | None:
        """Return the answer, or None where the device has none to give."""
        nvml = self._nvml
        try:
            return question()
        except nvml.NVMLError as error:
            if error.value in (nvml.NVML_ERROR_GPU_IS_LOST, nvml.NVML_ERROR_RESET_REQUIRED):
                raise DeviceLost(str(error)) from error
            if error.value in (
                nvml.NVML_ERROR_UNINITIALIZED,
                nvml.NVML_ERROR_DRIVER_NOT_LOADED,
                nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
            ):
                raise self._gone(error) from error
            return None

    def _gone(self, error: Exception) -> Unavailable:
        return Unavailable(
            f"the NVIDIA driver does not answer: {error}",
            hint="look at nvidia-smi on this host; the agent tries again by itself",
        )


def _pynvml() -> Any:  # noqa: ANN401
    import pynvml  # no other command needs it

    return pynvml


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
