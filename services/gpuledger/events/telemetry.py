"""Measured use of GPUs: one message per host and sampling interval."""

import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated

import msgspec

from gpuledger.events.fields import Composed, Count, Label, Name, Percent, Positive, is_storable
from gpuledger.kernel.errors import BadRecord

RUNGS = ("gpu_util", "gr_engine_active", "sm_active", "tensor_active")
"""The rungs of the utilisation ladder, from liveness up; each is a percentage."""

INTERVAL_MAX_S = 366 * 86_400

Slice = Annotated[int, msgspec.Meta(ge=1, le=1000)]
"""A part of one device, in milli-GPU."""


class XidSeen(msgspec.Struct, frozen=True, kw_only=True):
    """An XID error and when the driver reported it (RFC 3339)."""

    code: int
    at: Label


class GpuSample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was measured on one GPU over the interval; what was not measured is absent, never 0.

    Args:
        uuid: The device.
        run: The run that held it, as ``workload/run`` of the same cluster.
        handle: What the host calls the run that held it, where it does not know the ledger's name of it.
        gpu_util: Percent of time in which some kernel ran (the liveness rung).
        gr_engine_active: Percent, likewise sm_active and tensor_active.
        memory_mib: Memory in use.
        power_w: Mean power.
        energy_mj: Energy over the interval.
        xid: XID errors reported in the interval.
        ecc_uncorrected: Memory errors of the interval that could not be corrected.
        gpus_milli: How much of a device it is, in milli-GPU: 1000 unless it is a slice.
    """

    uuid: Label
    run: Label | None = None
    handle: Label | None = None
    gpu_util: Percent | None = None
    gr_engine_active: Percent | None = None
    sm_active: Percent | None = None
    tensor_active: Percent | None = None
    memory_mib: Decimal | None = None
    power_w: Decimal | None = None
    energy_mj: Decimal | None = None
    xid: list[XidSeen] | None = None
    ecc_uncorrected: Count | None = None
    gpus_milli: Slice | None = None

    def __post_init__(self) -> None:
        """Refuse what is no number; a sentinel must not enter an average."""
        for field, value in zip(_MEASURES, _measures(self), strict=True):
            if value is not None and not is_storable(value):
                raise ValueError(f"{field} is not a finite number of a sane size")


_MEASURES = (
    "gpu_util",
    "gr_engine_active",
    "sm_active",
    "tensor_active",
    "memory_mib",
    "power_w",
    "energy_mj",
)
_measures = operator.attrgetter(*_MEASURES)


class Sampled(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One host's GPUs over ``[time, time + interval_s)``."""

    cluster: Name
    host: Name
    interval_s: Positive
    gpus: list[GpuSample]


rungs_of: "Callable[[GpuSample], tuple[Decimal | None, ...]]" = operator.attrgetter(*RUNGS)
"""Returns what was measured of each of RUNGS."""


def check(fact: Sampled) -> None:
    """Refuse impossible values at the door, so that they never enter an average.

    Raises:
        BadRecord: When a percentage lies outside 0 to 100 or the interval is absurd.
    """
    if fact.interval_s > INTERVAL_MAX_S:
        raise BadRecord(
            f"interval_s: {fact.interval_s} is longer than a year",
            code="bad-interval",
            hint="send one sample an interval; intervals are seconds",
        )
    for gpu in fact.gpus:
        for rung, value in zip(RUNGS, rungs_of(gpu), strict=True):
            if value is not None and not 0 <= value <= 100:  # noqa: PLR2004 - percent
                raise BadRecord(
                    f"gpus[{gpu.uuid}].{rung}: {value} is not a percentage",
                    code="out-of-bounds",
                    hint="leave out what was not measured; sentinels are not values",
                )


Use = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""gpu_ms times parts per million: an hour of more than 2,500 busy GPUs is beyond what JSON takes for a safe integer."""


class SealedRung(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of one rung of the utilisation ladder over an hour.

    Args:
        rung: gpu_util, gr_engine_active, sm_active or tensor_active.
        sampled_gpu_ms: GPU-time that was sampled.
        used_gpu_upms: Its use, in gpu_ms times parts per million.
    """

    rung: Composed
    sampled_gpu_ms: Count
    used_gpu_upms: Use


class Sealed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of one hour's samples of a cluster, as evidence in its book; the event's time is the hour's end.

    Args:
        cluster: The cluster, which is also the book.
        gpus: Devices with samples in the hour.
        sampled_gpu_ms: GPU-time of all samples, every rung counted, idle devices too. Samples only add up, so of
            two seals of an hour the one with more of it knows more.
        assigned_gpu_ms: GPU-time that runs held in the hour, as known when it was sealed.
        rungs: Sums of samples taken while a run held the device, by rung.
        digest: SHA-256, in hex, over the hour's buckets in a canonical order.
    """

    cluster: Name
    gpus: Count
    sampled_gpu_ms: Count
    assigned_gpu_ms: Count
    rungs: list[SealedRung]
    digest: Composed
