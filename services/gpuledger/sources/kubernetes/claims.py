"""Dynamic Resource Allocation: which devices a ResourceClaim was given, and what part of a GPU each of them is.

A claim says which devices of which driver it was given, not since when: the pod that it was given to does. What a
device is, its model and its UUID stand in the ResourceSlices that the driver publishes. Without them a device that is
named as a whole GPU is one; what part of one any other is, is not guessed.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.kubernetes.naming import MADE
from gpuledger.sources.kubernetes.objects import Amount, Meta, Part, Pod, Pods
from gpuledger.sources.kubernetes.quantities import slices
from gpuledger.sources.kubernetes.reading import Seen, decode
from gpuledger.sources.values import Odd, name, shown

DRIVER = "gpu.nvidia.com"
_GPU_DRIVERS = "gpu."
"""What the drivers of GPUs of every maker begin with."""

_CLASSES = ("gpu.nvidia.com",)
"""Device classes of which one device is a whole GPU."""

_WHOLE = re.compile(r"gpu-[0-9]+")
_PROFILE = "profile"


class ExactRequest(Part, frozen=True):
    """So many devices of one class."""

    device_class_name: str = ""
    allocation_mode: str = ""
    count: Pods | None = None
    admin_access: bool | None = None


class DeviceRequest(ExactRequest, frozen=True):
    """A request of a claim: the class inside (v1, v1beta2) or beside its name (v1beta1)."""

    exactly: ExactRequest | None = None


class ClaimDevices(Part, frozen=True):
    """``spec.devices`` of a ResourceClaim."""

    requests: list[DeviceRequest] | None = None


class ClaimSpec(Part, frozen=True):
    """``spec`` of a ResourceClaim."""

    devices: ClaimDevices | None = None


class GivenDevice(Part, frozen=True):
    """A device that a claim was given."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    consumed_capacity: dict[str, Amount] | None = None


class GivenDevices(Part, frozen=True):
    """``status.allocation.devices`` of a ResourceClaim."""

    results: list[GivenDevice] | None = None


class Allocation(Part, frozen=True):
    """``status.allocation`` of a ResourceClaim."""

    devices: GivenDevices | None = None


class ClaimStatus(Part, frozen=True):
    """``status`` of a ResourceClaim."""

    allocation: Allocation | None = None


class ResourceClaim(Part, frozen=True):
    """``resource.k8s.io`` ResourceClaim."""

    metadata: Meta
    spec: ClaimSpec | None = None
    status: ClaimStatus | None = None


class Attribute(Part, frozen=True):
    """An attribute of a device; of those that are read all are words."""

    string: str | None = None


class BasicDevice(Part, frozen=True):
    """A device as v1beta1 has it."""

    attributes: dict[str, Attribute] | None = None


class SliceDevice(BasicDevice, frozen=True):
    """A device that a driver offers."""

    name: str = ""
    basic: BasicDevice | None = None


class Pool(Part, frozen=True):
    """The pool of a ResourceSlice, such as a node."""

    name: str = ""


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
        gpus_milli: Its part of a GPU.
        model: The GPU's model, where it is said.
        uuid: Its UUID, where it is said.
    """

    gpus_milli: int
    model: str | None
    uuid: str | None


class Claimed(NamedTuple):
    """What the claims of a pod were given, or ask for.

    Args:
        gpus_milli: In all.
        model: Of the first device that says it.
        uuids: Of all devices; none where one of them is not known.
        held_by_others: Claims that another pod, which is charged for them, holds too.
        unknown: Claims of which it is not known what they were given; of a pod that waits, those not seen at all.
    """

    gpus_milli: int = 0
    model: str | None = None
    uuids: list[str] | None = None
    held_by_others: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


NOTHING = Claimed()


class Claims:
    """Remembers claims and the devices that drivers offer."""

    def __init__(self) -> None:
        self._claims: dict[tuple[str, str], ResourceClaim] = {}
        self._offered: dict[tuple[str, str, str], Offered] = {}
        self._of_slice: dict[str, list[tuple[str, str, str]]] = {}
        self._holders: dict[tuple[str, str], str] = {}

    def claim(self, seen: Seen) -> tuple[list[MADE], list[Odd]]:
        """Remember a claim as long as it is there. It is no fact of its own: the pods that it was given to are.

        Raises:
            BadRecord: When it cannot be understood.
        """
        found = decode(ResourceClaim, seen.raw)
        key = found.metadata.namespace, name("metadata.name", found.metadata.name)
        if seen.is_gone:
            self._claims.pop(key, None)
            self._holders.pop(key, None)
        else:
            self._claims[key] = found
        return [], []

    def slice(self, seen: Seen) -> tuple[list[MADE], list[Odd]]:
        """Remember the GPUs that a driver offers.

        Raises:
            BadRecord: When it cannot be understood.
        """
        found = decode(ResourceSlice, seen.raw)
        named = name("metadata.name", found.metadata.name)
        for key in self._of_slice.pop(named, ()):
            self._offered.pop(key, None)
        if seen.is_gone or not is_of_gpus(found):
            return [], []
        pool = found.spec.pool.name if found.spec.pool else ""
        offered = {
            (DRIVER, pool, device.name): part
            for device in found.spec.devices or ()
            if (part := _offered(device)) is not None
        }
        self._offered.update(offered)
        self._of_slice[named] = list(offered)
        return [], []

    def of(self, pod: Pod) -> Claimed:
        """Return what a pod's claims were given.

        Raises:
            BadRecord: When what part of a GPU a device is, is not known.
        """
        total, unknown, others = 0, [], []
        devices: list[Offered] = []
        for claim_name in claims_of(pod):
            key = pod.metadata.namespace, claim_name
            found = self._claims.get(key)
            if found is None:
                unknown.append(claim_name)
                continue
            given = list(self._given(found))
            if found.status is None or found.status.allocation is None:
                if pod.spec.node_name:
                    unknown.append(claim_name)
                else:
                    total += _wanted(found)
            elif given and self._holders.get(key, pod.metadata.uid) != pod.metadata.uid:
                others.append(claim_name)
            else:
                devices += given
        total += sum(device.gpus_milli for device in devices)
        uuids = [device.uuid for device in devices if device.uuid is not None]
        model = next((device.model for device in devices if device.model is not None), None)
        is_known = bool(devices) and len(uuids) == len(devices)
        return Claimed(total, model, uuids if is_known else None, tuple(others), tuple(unknown))

    def hold(self, pod: Pod) -> None:
        """Note that a pod is charged for its claims; one that another pod holds stays with that one."""
        for claim_name in claims_of(pod):
            self._holders.setdefault((pod.metadata.namespace, claim_name), pod.metadata.uid)

    def release(self, pod: Pod) -> None:
        """Note that a pod is over."""
        for claim_name in claims_of(pod):
            key = pod.metadata.namespace, claim_name
            if self._holders.get(key) == pod.metadata.uid:
                del self._holders[key]

    def _given(self, claim: ResourceClaim) -> Iterator[Offered]:
        """Yield the GPUs, and parts of GPUs, that a claim was given."""
        allocation = claim.status.allocation if claim.status else None
        results = allocation.devices.results if allocation and allocation.devices else None
        for given in results or ():
            if not given.driver.startswith(_GPU_DRIVERS) or given.admin_access:
                continue  # a network device, or one that is looked at beside whoever holds it
            known = self._offered.get((given.driver, given.pool, given.device))
            if given.consumed_capacity:
                raise _unknown_part(given, "it is shared by capacity")
            if known is not None:
                yield known
            elif given.driver == DRIVER and _WHOLE.fullmatch(given.device):
                yield Offered(GPU_MILLI, None, None)
            else:
                raise _unknown_part(given, "no ResourceSlice says what it is")


def is_of_gpus(found: ResourceSlice) -> bool:
    """Say whether the devices of a slice are GPUs that are read."""
    return found.spec.driver == DRIVER


def claims_of(pod: Pod) -> Iterator[str]:
    """Yield the names of a pod's claims, as far as they were made; of those made for it alone its status tells."""
    made = {
        claim.name: claim.resource_claim_name
        for claim in (pod.status.resource_claim_statuses if pod.status else None) or ()
    }
    for claim in pod.spec.resource_claims or ():
        named = claim.resource_claim_name or made.get(claim.name)
        if named:
            yield named


def _wanted(claim: ResourceClaim) -> int:
    """Return the whole GPUs that a claim asks for; what it may get instead is known once it is given."""
    total = 0
    for request in (claim.spec.devices.requests if claim.spec and claim.spec.devices else None) or ():
        exact = request.exactly or request
        if exact.device_class_name in _CLASSES and exact.allocation_mode in {"", "ExactCount"}:
            total += 0 if exact.admin_access else GPU_MILLI * (1 if exact.count is None else exact.count)
    return total


def _offered(device: SliceDevice) -> Offered | None:
    """Return what a device is; None when its driver does not say, or nothing that is known.

    Raises:
        BadRecord: When it is a MIG device of a profile that is not in the table.
    """
    said = {
        key.removeprefix(f"{DRIVER}/"): one.string
        for key, one in ((device.basic or device).attributes or {}).items()
    }
    model, uuid = said.get("productName"), said.get("uuid")
    if model:
        name("productName", model)
    if uuid:
        name("uuid", uuid)
    match said.get("type"):
        case "gpu":
            return Offered(GPU_MILLI, model or None, uuid or None)
        case "mig" if said.get(_PROFILE):
            return Offered(slices(str(said[_PROFILE]), model=model or ""), model or None, uuid or None)
        case _:
            return None


def _unknown_part(given: GivenDevice, why: str) -> BadRecord:
    place = "/".join(shown(part) for part in (given.driver, given.pool, given.device))
    return BadRecord(
        f"{place}: how large a part of a GPU it is, is not known: {why}",
        code="unknown-share",
        hint="put the ResourceSlices and ResourceClaims into the stream before the Pods",
    )
