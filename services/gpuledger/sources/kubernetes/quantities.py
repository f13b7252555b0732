"""How many GPUs a resource list stands for, in milli-GPU.

Extended resources are whole numbers: ``nvidia.com/gpu: 8`` is 8 devices, a MIG resource so many slices of a
profile. What shares a device without saying how large its part is, is refused.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.kubernetes.objects import Amount, Container, PodSpec, Resources
from gpuledger.sources.slices import part_of
from gpuledger.sources.values import GPU_LIMIT, shown

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-"
WHOLE_GPUS = (GPU, "amd.com/gpu")

_MODE = re.compile(r"(?:amd\.com/)?(?P<mode>spx|dpx|tpx|qpx|cpx)_nps[0-9]", re.IGNORECASE)
_OF_MODE = {"spx": 1, "dpx": 2, "tpx": 3, "qpx": 4}
"""Partitions of a GPU of AMD in each of its modes; in ``cpx`` there are as many as the model has compute dies."""

_DIES = {"MI300A": 6, "MI300X": 8, "MI325X": 8, "MI350X": 8, "MI355X": 8}

_SHARED = ("nvidia.com/gpu.shared",)
_CORES, _TOTAL_CORES = "nvidia.com/gpucores", "nvidia.com/total-gpucores"
_MEMORIES = ("nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/total-gpumem")
_MILLI_PER_CORE = 10
"""HAMi counts the compute of a device in percent."""

_WHOLE = re.compile(r"([0-9]{1,15})(k|M|Ki|Mi)?")
_FACTORS = {None: 1, "k": 1000, "M": 1000**2, "Ki": 1024, "Mi": 1024**2}
_FRACTION = re.compile(r"[0-9]{0,6}\.?[0-9]{1,9}")


def whole(field: str, value: Amount) -> int:
    """Return a quantity that is a whole number; the API writes 1000 as ``1k``.

    Raises:
        BadRecord: When it is none, or more GPUs than any cluster has.
    """
    match = _WHOLE.fullmatch(str(value))
    if match is None:
        raise BadRecord(
            f"{field}: {shown(str(value))} is not a whole number",
            code="not-a-number",
            hint="extended resources are counted in whole numbers",
        )
    count = int(match[1]) * _FACTORS[match[2]]
    if count > GPU_LIMIT:
        raise BadRecord(
            f"{field}: {count} is more than the limit of {GPU_LIMIT}",
            code="out-of-bounds",
            hint="correct the number of GPUs",
        )
    return count


def milli(field: str, value: Amount) -> int:
    """Return a quantity of GPUs that may be a part of one, such as ``500m``, ``0.5`` or ``2``.

    Raises:
        BadRecord: When it is none of these.
    """
    text = str(value)
    number = _FRACTION.fullmatch(text.removesuffix("m"))
    if number is None:
        return whole(field, value) * GPU_MILLI
    parts = Decimal(number[0]) * (1 if text.endswith("m") else GPU_MILLI)
    return int(parts)


def whole_mib(field: str, value: Amount) -> int:
    """Return an amount of memory in MiB.

    Raises:
        BadRecord: When it is no whole number.
    """
    text = str(value)
    if not (text.isascii() and text.isdigit() and len(text) <= 12):  # noqa: PLR2004 - more than any memory
        raise BadRecord(
            f"{field}: {shown(text)} is not a number of MiB", code="not-a-number", hint="write digits only"
        )
    return int(text)


def slices(profile: str, count: int = 1, model: str = "") -> int:
    """Return what so many MIG slices of a profile are, in milli-GPU, rounded down together.

    Runs that share a device never add up to more than it.

    Args:
        profile: As resources and labels name it, such as ``1g.10gb`` or ``1g.10gb.me``.
        count: How many of one run.
        model: The device's, where it is known.

    Raises:
        BadRecord: When the profile is not known.
    """
    part = part_of(profile, model)
    if part is None:
        raise BadRecord(
            f"{MIG}{profile}: the profile is not known",
            code="unknown-profile",
            hint="its part of a device must be in the table of docs/sources/kubernetes.md",
        )
    return part.milli(count)


def gpus_milli(resources: Mapping[str, Amount], device_milli: int = GPU_MILLI) -> int:
    """Return the GPUs of a resource list.

    Args:
        resources: Resource -> quantity.
        device_milli: What one ``nvidia.com/gpu`` is; less than 1000 on a node that offers parts as devices.

    Raises:
        BadRecord: When a quantity is no whole number, a profile is not known, or a part's size is not said.
    """
    total = 0
    for key, value in resources.items():
        if not key.startswith(("nvidia.com/", "amd.com/")):
            continue
        if key in WHOLE_GPUS:
            total += whole(key, value) * device_milli
        elif key.startswith(MIG):
            total += slices(key.removeprefix(MIG), whole(key, value))
        elif (mode := partition_mode(key)) and (count := whole(key, value)):
            total += GPU_MILLI * count // partitions_of(key, mode)
        elif key in _SHARED and whole(key, value):
            if device_milli == GPU_MILLI:
                raise _unknown_share(key)
            total += whole(key, value) * device_milli
    return _virtual(resources, total)


def partition_mode(text: str) -> str | None:
    """Return the mode in which a GPU of AMD is partitioned that a resource, or a label, names, if it is one."""
    found = _MODE.fullmatch(text)
    return found["mode"].lower() if found else None


def partitions_of(field: str, mode: str, model: str = "") -> int:
    """Return how many partitions a GPU of AMD has in a mode.

    Raises:
        BadRecord: When that hangs on its model, which is not known.
    """
    dies = next((count for known, count in _DIES.items() if known in model.upper()), None)
    found = _OF_MODE.get(mode, dies)
    if found is None:
        raise _unknown_share(field, "claim the device from AMD's driver instead: its ResourceSlices tell it")
    return found


def _virtual(resources: Mapping[str, Amount], total: int) -> int:
    """Return the part of the devices that is asked for, where ``nvidia.com/gpu`` counts virtual ones (HAMi)."""
    if _TOTAL_CORES in resources:
        return whole(_TOTAL_CORES, resources[_TOTAL_CORES]) * _MILLI_PER_CORE
    if _CORES in resources:
        devices = whole(GPU, resources.get(GPU, 1))
        return devices * whole(_CORES, resources[_CORES]) * _MILLI_PER_CORE
    by_memory = next((key for key in _MEMORIES if key in resources), None)
    if by_memory is not None and total:
        raise _unknown_share(by_memory)
    return total


def _unknown_share(
    key: str, hint: str = "put the Nodes into the stream before the Pods, or ask for nvidia.com/gpucores too"
) -> BadRecord:
    return BadRecord(
        f"{key}: how large a part of the device it is, is not said", code="unknown-share", hint=hint
    )


def asked_milli(spec: PodSpec, device_milli: int = GPU_MILLI) -> int:
    """Return the GPUs that a pod holds: all containers together, or what one init container needs if that is more.

    Raises:
        BadRecord: As ``gpus_milli``.
    """
    beside = most = 0
    for container in spec.init_containers or ():
        own = gpus_milli(_of(container.resources), device_milli)
        if container.restart_policy == "Always":
            beside += own
            most = max(most, beside)
        else:
            most = max(most, beside + own)
    return max(most, beside + _together(spec.containers or (), device_milli))


def _together(containers: Sequence[Container], device_milli: int) -> int:
    return sum(gpus_milli(_of(container.resources), device_milli) for container in containers)


def _of(resources: Resources | None) -> Mapping[str, Amount]:
    """Return what is asked for: limits of extended resources are their requests."""
    if resources is None:
        return {}
    return {**(resources.requests or {}), **(resources.limits or {})}


def fraction_milli(field: str, value: str) -> int:
    """Return a part of one GPU written as a decimal, such as ``0.5``; floored to a thousandth.

    Raises:
        BadRecord: When it is no number between 0 and 1.
    """
    number = Decimal(value) if _FRACTION.fullmatch(value) else Decimal(-1)
    if not 0 < number <= 1:
        raise BadRecord(
            f"{field}: {shown(value)} is no part of a GPU",
            code="out-of-bounds",
            hint="write a number above 0, up to 1",
        )
    return int(number * GPU_MILLI)
