"""Measured use: what was not measured is absent, what is no number is refused."""

from decimal import Decimal

import msgspec
import pytest

from gpuledger.events.telemetry import GpuSample, Sampled

MEASURES = "gpu_util", "gr_engine_active", "sm_active", "tensor_active", "memory_mib", "power_w", "energy_mj"


def test_a_measure_that_is_absent_is_not_zero() -> None:
    sample = msgspec.json.decode(b'{"uuid":"g","gpu_util":0}', type=GpuSample)
    assert (sample.gpu_util, sample.sm_active) == (0, None)
    assert msgspec.json.decode(msgspec.json.encode(sample)).keys() == {"uuid", "gpu_util"}


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("number", ["NaN", "Infinity", "1E+31", "1E-31"])
def test_a_sentinel_is_refused_in_every_measure(measure: str, number: str) -> None:
    with pytest.raises(ValueError, match=f"{measure} is not a finite number"):
        GpuSample(uuid="g", **{measure: Decimal(number)})  # type: ignore[arg-type]


@pytest.mark.parametrize("interval", [b"0", b"-60", b"1.5"])
def test_an_interval_has_a_length(interval: bytes) -> None:
    value = b'{"cluster":"c","host":"h","gpus":[],"interval_s":' + interval + b"}"
    with pytest.raises(msgspec.ValidationError, match="interval_s"):
        msgspec.json.decode(value, type=Sampled)
