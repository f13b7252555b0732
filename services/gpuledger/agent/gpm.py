"""How much of a device was busy between two readings, on devices that count it (NVML's GPM: Hopper and newer).

The driver takes samples of a device's counters; a share is the difference of two of them, so it is of the whole time
between. Each device holds two samples that are filled in turn, and the driver frees them when the agent lets go.
"""

import math
from typing import Any

from gpuledger.agent.driver import Device

RUNGS = ("gr_engine_active", "sm_active", "tensor_active")
"""What is asked for, in the names of the utilisation ladder."""

Shares = tuple[float | None, ...]
"""Percent of each of RUNGS; None is what was not measured."""

UNKNOWN: Shares = (None,) * len(RUNGS)

_MOST = 100.0


class Gpm:
    """The samples of one driver, as long as it is open.

    Args:
        nvml: The bindings. They raise ``NVMLError``, which whoever asks understands.
    """

    def __init__(self, nvml: Any) -> None:  # noqa: ANN401 - it has no types
        self._nvml = nvml
        self._pairs: dict[Device, tuple[Any, Any] | None] = {}
        self._filled: set[Device] = set()

    def shares(self, device: Device, handle: Any) -> Shares:  # noqa: ANN401
        """Return how busy a device was since this was asked last; unknown the first time, and where nobody counts."""
        nvml = self._nvml
        if device not in self._pairs:
            is_counted = nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice
            self._pairs[device] = (
                (nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()) if is_counted else None
            )
        pair = self._pairs[device]
        if pair is None:
            return UNKNOWN
        before, now = pair
        was_filled = device in self._filled
        self._filled.discard(device)  # a sample that fails is no beginning of the next difference
        nvml.nvmlGpmSampleGet(handle, now)
        self._pairs[device] = now, before
        self._filled.add(device)
        return self._difference(before, now) if was_filled else UNKNOWN

    def close(self) -> None:
        """Give the samples back; the driver may be gone already."""
        pairs, self._pairs = self._pairs, {}
        self._filled.clear()
        for sample in (sample for pair in pairs.values() if pair is not None for sample in pair):
            self._nvml.nvmlGpmSampleFree(sample)

    def _difference(self, before: Any, now: Any) -> Shares:  # noqa: ANN401
        nvml = self._nvml
        asked = nvml.c_nvmlGpmMetricsGet_t()
        asked.version = nvml.NVML_GPM_METRICS_GET_VERSION
        asked.numMetrics = len(RUNGS)
        asked.sample1, asked.sample2 = before, now
        ids = (
            nvml.NVML_GPM_METRIC_GRAPHICS_UTIL,
            nvml.NVML_GPM_METRIC_SM_UTIL,
            nvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL,
        )
        for place, metric in enumerate(ids):
            asked.metrics[place].metricId = metric
        nvml.nvmlGpmMetricsGet(asked)
        answers = [asked.metrics[place] for place in range(len(RUNGS))]
        return tuple(
            answer.value
            if answer.nvmlReturn == nvml.NVML_SUCCESS
            and math.isfinite(answer.value)
            and 0 <= answer.value <= _MOST
            else None
            for answer in answers
        )
