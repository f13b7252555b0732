"""What the devices of ResourceSlices are: which part of a GPU, of which model, with which UUID.

Each driver of GPUs names them in its own way. What a driver does not say is not guessed: whoever holds such a device is
a dead letter.

| driver | a whole GPU | a part of one |
|---|---|---|
| ``gpu.nvidia.com`` | ``type`` ``gpu`` or ``vfio`` | ``mig``: its ``profile`` |
| ``gpu.amd.com`` | ``amdgpu``; ``vfio`` but no virtual function | ``amdgpu-partition``: one of those at its address |
| ``gpu.intel.com`` | ``millicores`` of 1000, no ``type`` but ``gpu`` | a virtual function: its size is not said |
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.sources.kubernetes.objects import Amount, Meta, Part
from gpuledger.sources.kubernetes.quantities import slices, whole
from gpuledger.sources.slices import Part as Slices
from gpuledger.sources.slices import apportioned
from gpuledger.sources.values import name

NVIDIA, AMD, INTEL = "gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com"
DRIVERS = (NVIDIA, AMD, INTEL)

_PARENTS = ("resource.kubernetes.io/pciBusID", "pciAddr")
_PARTITIONS = "partitions"
_NUMBER = re.compile(r"([0-9]{1,15})")
_UNKNOWN = "Unknown"


class Attribute(Part, frozen=True):
    """An attribute of a device; numbers and versions are not read."""

    string: str | None = None
    is_true: bool | None = msgspec.field(name="bool", default=None)


class Capacity(Part, frozen=True):
    """How much of something a device has."""

    value: Amount = 0


class BasicDevice(Part, frozen=True):
    """A device as v1beta1 has it; v1alpha3 has bare amounts."""

    attributes: dict[str, Attribute] | None = None
    capacity: dict[str, Capacity | str | int] | None = None


class SliceDevice(BasicDevice, frozen=True):
    """A device that a driver offers."""

    name: str = ""
    basic: BasicDevice | None = None


class Pool(Part, frozen=True):
    """The pool of a ResourceSlice, such as a node, and in how many slices it is told."""

    name: str = ""
    resource_slice_count: int = 1


class SliceSpec(Part, frozen=True):
    """``spec`` of a ResourceSlice."""

    driver: str = ""
    pool: Pool | None = None
    devices: list[SliceDevice] | None = None


class ResourceSlice(Part, frozen=True):
    """``resource.k8s.io`` ResourceSlice."""

    metadata: Meta
    spec: SliceSpec


class Offered(NamedTuple):
    """What a device is.

    Args:
        gpus_milli: Its part of a GPU; None where that hangs on the others of its GPU.
        model: The GPU's model, where it is said.
        uuid: Its UUID, where it is said.
        parent: The GPU that it is a partition of.
        shares: In how many equal shares it may be given, where it may.
    """

    gpus_milli: int | None
    model: str | None = None
    uuid: str | None = None
    parent: str | None = None
    shares: int | None = None


def is_of_gpus(found: ResourceSlice) -> bool:
    """Say whether the devices of a slice are GPUs that are read."""
    return found.spec.driver in DRIVERS


def pool_of(found: ResourceSlice) -> Pool:
    """Return the pool of a slice."""
    return found.spec.pool or Pool()


def offered(found: ResourceSlice) -> Iterator[tuple[str, Offered]]:
    """Yield the devices of a slice of which it is known what they are.

    Raises:
        BadRecord: When a name cannot be one, a number cannot be read, or a profile of MIG is not in the table.
    """
    for device in found.spec.devices or ():
        part = _offered(found.spec.driver, device)
        if part is not None:
            yield device.name, part


def partition_milli(device: str, siblings: Mapping[str, Offered]) -> int:
    """Return what a partition is: those of one GPU are alike, and apportioned in the order of their numbers.

    Args:
        device: Which of them.
        siblings: All partitions of the GPU.
    """
    ordered = sorted(siblings, key=_natural)
    parts = apportioned([Slices(1, len(ordered))] * len(ordered))
    return parts[ordered.index(device)]


def share_milli(known: Offered, consumed: Mapping[str, Amount] | None) -> int | None:
    """Return what is held of a device that is given in shares; None when the driver says nothing that tells it.

    Args:
        known: The device.
        consumed: What was taken of its capacities; one share where that is not said.

    Raises:
        BadRecord: When a number cannot be read.
    """
    if known.shares is None:
        return None
    taken = {_bare(AMD, key): value for key, value in (consumed or {}).items()}
    count = whole(_PARTITIONS, taken.get(_PARTITIONS, 1))
    return GPU_MILLI * count // known.shares if 0 < count <= known.shares else None


def _offered(driver: str, device: SliceDevice) -> Offered | None:
    inner = device.basic or device
    said = {_bare(driver, key): one for key, one in (inner.attributes or {}).items()}
    words = {key: one.string for key, one in said.items() if one.string}
    capacity = {
        _bare(driver, key): one.value if isinstance(one, Capacity) else one
        for key, one in (inner.capacity or {}).items()
    }
    for field in ("productName", "uuid", "family", "model"):
        if field in words:
            name(field, words[field])
    match driver:
        case "gpu.nvidia.com":
            return _of_nvidia(words)
        case "gpu.amd.com":
            is_virtual = bool(said.get("isVF", Attribute()).is_true)
            return _of_amd(words, capacity, is_virtual=is_virtual)
        case _:
            return _of_intel(words, capacity)


def _of_nvidia(words: Mapping[str, str]) -> Offered | None:
    model, uuid = words.get("productName"), words.get("uuid")
    match words.get("type"):
        case "gpu" | "vfio":
            return Offered(GPU_MILLI, model, uuid)
        case "mig" if words.get("profile"):
            return Offered(slices(words["profile"], model=model or ""), model, uuid)
        case _:
            return None


def _of_amd(words: Mapping[str, str], capacity: Mapping[str, Amount], *, is_virtual: bool) -> Offered | None:
    model = words.get("productName")
    parent = next((words[key] for key in _PARENTS if key in words), None)
    if _PARTITIONS in capacity:
        return Offered(None, model, shares=whole(_PARTITIONS, capacity[_PARTITIONS]) or None)
    match words.get("type"):
        case "amdgpu":
            return Offered(GPU_MILLI, model)
        case "amdgpu-partition" if parent:
            return Offered(None, model, parent=parent)
        case "vfio" if not is_virtual:
            return Offered(GPU_MILLI, model)
        case _:
            return None


def _of_intel(words: Mapping[str, str], capacity: Mapping[str, Amount]) -> Offered | None:
    """Return what a device is: of a virtual function its driver says 1000 millicores too, and that is not so."""
    if words.get("type", "gpu") != "gpu" or "millicores" not in capacity:
        return None
    named = [words[key] for key in ("family", "model") if words.get(key, _UNKNOWN) != _UNKNOWN]
    milli = whole("millicores", capacity["millicores"])
    return Offered(milli, " ".join(named) or None) if 0 < milli <= GPU_MILLI else None


def _bare(driver: str, key: str) -> str:
    return key.removeprefix(f"{driver}/")


def _natural(device: str) -> tuple[str | int, ...]:
    return tuple(int(part) if at % 2 else part for at, part in enumerate(_NUMBER.split(device)))
