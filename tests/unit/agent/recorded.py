# ruff: noqa: N802, N815 - the names are those of the bindings
"""A driver that is not there: the calls of the bindings, answered from a session that a test writes down."""

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from gpuledger.agent.driver import Device, DeviceLost, Snapshot, Xid
from gpuledger.kernel.errors import Unavailable

START = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC)
START_S = int(START.timestamp())

CODES = {
    "UNINITIALIZED": 1,
    "NOT_SUPPORTED": 3,
    "TIMEOUT": 10,
    "DRIVER_NOT_LOADED": 9,
    "LIBRARY_NOT_FOUND": 12,
    "GPU_IS_LOST": 15,
    "RESET_REQUIRED": 16,
    "LIB_RM_VERSION_MISMATCH": 18,
}


class Clock:
    """A clock that moves when somebody waits."""

    def __init__(self) -> None:
        self.at = START

    def now(self) -> dt.datetime:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += dt.timedelta(seconds=seconds)


class NVMLError(Exception):
    """As the bindings raise it."""

    def __init__(self, name: str) -> None:
        super().__init__(name.replace("_", " ").lower())
        self.value = CODES[name]


@dataclass
class Card:
    """One device of the session. A value that is the name of an error raises it."""

    uuid: str = "GPU-1"
    pci: str = "00000000:18:00.0"
    util: Any = 97
    memory: Any = 512 << 20
    power: Any = 650_000
    energy: Any = 1_000_000
    errors: Any = 0
    remapped: Any = (0, 0, 0, 0)
    pids: Any = ()
    can_listen: bool = True
    shares: Any = None
    """Percent that the engine, SMs and tensor cores were busy since the sample before; None where nobody counts."""


@dataclass
class Bindings:
    """The module ``pynvml``, as far as the agent calls it."""

    cards: list[Card]
    sleep: Callable[[float], None]
    failing: str | None = None
    events: list[tuple[Card, int] | str] = field(default_factory=list)
    opened: int = 0
    closed: int = 0
    held: int = 0
    """Samples that were taken from the driver and not given back."""

    NVMLError = NVMLError
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
    NVML_VOLATILE_ECC = 0
    nvmlEventTypeXidCriticalError = 8
    NVML_SUCCESS = 0
    NVML_GPM_METRICS_GET_VERSION = 1
    NVML_GPM_METRIC_GRAPHICS_UTIL = 1
    NVML_GPM_METRIC_SM_UTIL = 2
    NVML_GPM_METRIC_ANY_TENSOR_UTIL = 5

    def __post_init__(self) -> None:
        for name, code in CODES.items():
            setattr(self, f"NVML_ERROR_{name}", code)

    def nvmlInit(self) -> None:
        if self.failing:
            raise NVMLError(self.failing)
        self.opened += 1

    def nvmlShutdown(self) -> None:
        self.closed += 1
        if self.failing:
            raise NVMLError(self.failing)

    def nvmlDeviceGetCount(self) -> int:
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Card:
        if self.cards[index].uuid == "GPU_IS_LOST":
            raise NVMLError("GPU_IS_LOST")
        return self.cards[index]

    def nvmlDeviceGetUUID(self, card: Card) -> str:
        return card.uuid

    def nvmlDeviceGetPciInfo(self, card: Card) -> SimpleNamespace:
        return SimpleNamespace(busId=card.pci.encode())

    def nvmlDeviceGetMinorNumber(self, card: Card) -> int:
        if card.uuid not in MINORS:
            raise NVMLError("NOT_SUPPORTED")
        return MINORS[card.uuid]

    def nvmlDeviceGetUtilizationRates(self, card: Card) -> SimpleNamespace:
        return SimpleNamespace(gpu=_answer(card.util))

    def nvmlDeviceGetMemoryInfo(self, card: Card) -> SimpleNamespace:
        return SimpleNamespace(used=_answer(card.memory))

    def nvmlDeviceGetPowerUsage(self, card: Card) -> int:
        return int(_answer(card.power))

    def nvmlDeviceGetTotalEnergyConsumption(self, card: Card) -> int:
        return int(_answer(card.energy))

    def nvmlDeviceGetTotalEccErrors(self, card: Card, kind: int, counter: int) -> int:
        assert (kind, counter) == (1, 0)
        return int(_answer(card.errors))

    def nvmlDeviceGetRemappedRows(self, card: Card) -> tuple[int, int, int, int]:
        found: tuple[int, int, int, int] = _answer(card.remapped)
        return found

    def nvmlDeviceGetComputeRunningProcesses(self, card: Card) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=pid) for pid in _answer(card.pids)]

    def nvmlEventSetCreate(self) -> str:
        return "events"

    def nvmlEventSetFree(self, events: str) -> None:
        assert events == "events"

    def nvmlDeviceRegisterEvents(self, card: Card, kind: int, events: str) -> None:
        assert (kind, events) == (8, "events")
        if not card.can_listen:
            raise NVMLError("NOT_SUPPORTED")

    def nvmlEventSetWait_v2(self, events: str, milliseconds: int) -> SimpleNamespace:
        assert events == "events"
        if not self.events:
            self.sleep(milliseconds / 1000)
            raise NVMLError("TIMEOUT")
        event = self.events.pop(0)
        if isinstance(event, str):
            raise NVMLError(event)
        card, code = event
        return SimpleNamespace(device=card, eventData=code)

    def nvmlGpmQueryDeviceSupport(self, card: Card) -> SimpleNamespace:
        return SimpleNamespace(isSupportedDevice=int(card.shares is not None))

    def nvmlGpmSampleAlloc(self) -> list[Any]:
        self.held += 1
        return []

    def nvmlGpmSampleFree(self, sample: list[Any]) -> None:
        del sample
        self.held -= 1

    def nvmlGpmSampleGet(self, card: Card, sample: list[Any]) -> None:
        sample[:] = [_answer(card.shares)]

    def c_nvmlGpmMetricsGet_t(self) -> SimpleNamespace:
        return SimpleNamespace(metrics=[SimpleNamespace() for _ in range(477)])

    def nvmlGpmMetricsGet(self, asked: SimpleNamespace) -> None:
        assert (asked.version, asked.numMetrics) == (1, 3)
        assert asked.sample1 is not asked.sample2
        assert asked.sample1
        (shares,) = asked.sample2
        by_id = dict(zip((1, 2, 5), shares, strict=True))
        for metric in asked.metrics[: asked.numMetrics]:
            value = by_id[metric.metricId]
            metric.nvmlReturn, metric.value = (0, value) if value is not None else (3, 0.0)


def _answer(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, str):
        raise NVMLError(value)
    return value


MINORS = {"GPU-1": 1, "GPU-2": 0}
"""Files are numbered in another order than devices."""

GPU_1 = Device(0, "GPU-1", "00000000:18:00.0", 1)
GPU_2 = Device(1, "GPU-2", "00000000:2A:00.0", 0)


class Script:
    """A driver that says what a test writes down: a step is what each device says, or what goes wrong."""

    def __init__(
        self,
        clock: Clock,
        steps: list[dict[Device, Snapshot | None] | str],
        xids: dict[int, Xid] | None = None,
    ) -> None:
        self._clock, self._steps, self._xids = clock, iter(steps), xids or {}
        self._now: dict[Device, Snapshot | None] = {}
        self._step = -1
        self.closed = 0

    def devices(self) -> list[Device]:
        self._step += 1
        step = next(self._steps)
        if isinstance(step, str):
            raise Unavailable(step)
        self._now = step
        return list(step)

    def read(self, device: Device) -> Snapshot:
        said = self._now[device]
        if said is None:
            raise DeviceLost("lost")
        return said

    def wait(self, seconds: float) -> list[Xid]:
        xid = self._xids.pop(self._step, None)
        self._clock.sleep(seconds / 2 if xid else seconds)
        return [xid] if xid else []

    def close(self) -> None:
        self.closed += 1


def ticking(energy: int = 1_000_000, power: int = 650_000) -> Iterator[Snapshot]:
    """Yield snapshots of a busy device, five seconds apart."""
    while True:
        yield Snapshot(gpu_util=97, memory_bytes=512 << 20, power_mw=power, energy_mj=energy)
        energy += power * 5
