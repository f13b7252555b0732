"""Dynamic Resource Allocation: which devices a ResourceClaim was given, and what part of a GPU each of them is.

A claim says which devices of which driver it was given, not since when: the pod that it was given to does. What a
device is, its model and its UUID stand in the ResourceSlices that the driver publishes. Without them a device that is
named as a whole GPU is one; what part of one any other is, is not guessed.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.kubernetes.devices import (
    DRIVERS,
    NVIDIA,
    Offered,
    ResourceSlice,
    is_of_gpus,
    offered,
    partition_milli,
    pool_of,
    share_milli,
)
from gpuledger.sources.kubernetes.naming import MADE
from gpuledger.sources.kubernetes.objects import Amount, Meta, Part, Pod, Pods
from gpuledger.sources.kubernetes.reading import Seen, decode
from gpuledger.sources.kubernetes.sharing import Given, Shares
from gpuledger.sources.values import Odd, name, shown

_GPU_DRIVERS = "gpu."
"""What the drivers of GPUs of every maker begin with."""

_WHOLE = re.compile(r"gpu-[0-9]+")


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


class Claimed(NamedTuple):
    """What the claims of a pod were given, or ask for.

    Args:
        gpus_milli: In all, without what other pods hold now.
        model: Of the first device that says it.
        uuids: Of all devices; none where one of them is not known.
        given: The claims that were given GPUs.
        unknown: Claims of which it is not known what they were given; of a pod that waits, those not seen at all.
    """

    gpus_milli: int = 0
    model: str | None = None
    uuids: list[str] | None = None
    given: tuple[Given, ...] = ()
    unknown: tuple[str, ...] = ()


NOTHING = Claimed()


class _Device(NamedTuple):
    """A device that was given: its part of a GPU, and what it is."""

    gpus_milli: int
    known: Offered


class Claims:
    """Remembers claims and the devices that drivers offer.

    Args:
        shares: Who holds which claims.
        forgotten: Names of claims that were known when a pod became a dead letter: a retry, which does not know them,
            must not take it for one that holds nothing else.
    """

    def __init__(self, shares: Shares, forgotten: Collection[str] = ()) -> None:
        self._shares, self._forgotten = shares, forgotten
        self._claims: dict[tuple[str, str], ResourceClaim] = {}
        self._offered: dict[tuple[str, str], dict[str, Offered]] = {}
        self._slices: dict[str, tuple[tuple[str, str], int, list[str]]] = {}

    def claim(self, seen: Seen) -> tuple[list[MADE], list[Odd]]:
        """Remember a claim as long as it is there. It is no fact of its own: the pods that it was given to are.

        Raises:
            BadRecord: When it cannot be understood.
        """
        found = decode(ResourceClaim, seen.raw)
        key = found.metadata.namespace, name("metadata.name", found.metadata.name)
        if seen.is_gone:
            self._claims.pop(key, None)
            self._shares.gone(_key(found))
        else:
            self._claims[key] = found
        return [], []

    def is_given(self, namespace: str, claim: str) -> bool:
        """Say whether it is known what a claim was given."""
        found = self._claims.get((namespace, claim))
        return found is not None and found.status is not None and found.status.allocation is not None

    def slice(self, seen: Seen) -> tuple[list[MADE], list[Odd]]:
        """Remember the GPUs that a driver offers.

        Raises:
            BadRecord: When it cannot be understood.
        """
        found = decode(ResourceSlice, seen.raw)
        named = name("metadata.name", found.metadata.name)
        if (before := self._slices.pop(named, None)) is not None:
            of_pool, _, devices = before
            for device in devices:
                self._offered[of_pool].pop(device, None)
        if seen.is_gone or not is_of_gpus(found):
            return [], []
        pool = pool_of(found)
        of_pool, parts = (found.spec.driver, pool.name), dict(offered(found))
        self._offered.setdefault(of_pool, {}).update(parts)
        self._slices[named] = of_pool, pool.resource_slice_count, list(parts)
        return [], []

    def of(self, pod: Pod, own: str) -> Claimed:
        """Return what a pod's claims were given.

        Args:
            pod: The pod.
            own: What it is called.

        Raises:
            BadRecord: When what part of a GPU a device is, is not known, or what was known is forgotten.
        """
        total, unknown = 0, []
        given: dict[str, Given] = {}
        devices: list[_Device] = []
        for claim_name in claims_of(pod):
            found = self._claims.get((pod.metadata.namespace, claim_name))
            if found is None:
                if claim_name in self._forgotten:
                    raise unknown_claims([claim_name])
                unknown.append(claim_name)
            elif not self.is_given(pod.metadata.namespace, claim_name):
                if pod.spec.node_name:
                    unknown.append(claim_name)
                else:
                    total += self._wanted(found)
            elif (key := _key(found)) not in given and (got := list(self._given(found))):
                given[key] = Given(key, sum(device.gpus_milli for device in got))
                if self._shares.is_free(key, own):
                    devices += got
        total += sum(device.gpus_milli for device in devices)
        uuids = [device.known.uuid for device in devices if device.known.uuid is not None]
        model = next((device.known.model for device in devices if device.known.model is not None), None)
        is_known = bool(devices) and len(uuids) == len(devices)
        return Claimed(total, model, uuids if is_known else None, tuple(given.values()), tuple(unknown))

    def _given(self, claim: ResourceClaim) -> Iterator[_Device]:
        """Yield the GPUs, and parts of GPUs, that a claim was given."""
        allocation = claim.status.allocation if claim.status else None
        results = allocation.devices.results if allocation and allocation.devices else None
        for given in results or ():
            if not given.driver.startswith(_GPU_DRIVERS) or given.admin_access:
                continue  # a network device, or one that is looked at beside whoever holds it
            known = self._offered.get((given.driver, given.pool), {}).get(given.device)
            if known is not None:
                yield _Device(self._milli(given, known), known)
            elif given.consumed_capacity:
                raise _unknown_part(given, "it is shared by capacity")
            elif given.driver == NVIDIA and _WHOLE.fullmatch(given.device):
                yield _Device(GPU_MILLI, Offered(GPU_MILLI))
            else:
                raise _unknown_part(given, "no ResourceSlice says what it is")

    def _milli(self, given: GivenDevice, known: Offered) -> int:
        """Return the part of a GPU that a device is which a driver offers."""
        if known.shares is not None:
            milli = share_milli(known, given.consumed_capacity)
            if milli is not None:
                return milli
        if given.consumed_capacity:
            raise _unknown_part(given, "it is shared by capacity")
        if known.gpus_milli is not None:
            return known.gpus_milli
        of_pool = given.driver, given.pool
        seen = [count for pool, count, _ in self._slices.values() if pool == of_pool]
        if known.parent is None or len(seen) < max(seen):
            raise _unknown_part(given, "not all ResourceSlices of its pool were seen")
        devices = self._offered[of_pool].items()
        return partition_milli(
            given.device, {device: one for device, one in devices if one.parent == known.parent}
        )

    def _wanted(self, claim: ResourceClaim) -> int:
        """Return the whole GPUs that a claim asks for; what it may get instead is known once it is given."""
        total = 0
        for request in (claim.spec.devices.requests if claim.spec and claim.spec.devices else None) or ():
            exact = request.exactly or request
            if exact.allocation_mode in {"", "ExactCount"} and not exact.admin_access:
                total += self._of_class(exact.device_class_name) * (1 if exact.count is None else exact.count)
        return total

    def _of_class(self, device_class: str) -> int:
        """Return what a device of a class is: of a driver's own class, what all are that it offers."""
        if device_class == NVIDIA or device_class not in DRIVERS:  # NVIDIA has a class of its own for slices
            return GPU_MILLI if device_class == NVIDIA else 0
        pools = (devices for (driver, _), devices in self._offered.items() if driver == device_class)
        parts = {one.gpus_milli for devices in pools for one in devices.values()}
        return next(iter(parts)) or 0 if len(parts) == 1 else 0


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


def unknown_claims(names: Iterable[str]) -> BadRecord:
    """Return the error for claims of which it is not known what they were given."""
    return BadRecord(
        f"spec.resourceClaims: what {', '.join(shown(one) for one in names)} was given is not known",
        code="unknown-claim",
        hint="put ResourceClaims into the stream before the Pods, or let the collector's account list and watch them",
    )


def _key(claim: ResourceClaim) -> str:
    """Return what a claim is called; one that is made anew under its name is another."""
    meta = claim.metadata
    return f"{meta.namespace}/{meta.name}/{meta.uid}"


def _unknown_part(given: GivenDevice, why: str) -> BadRecord:
    place = "/".join(shown(part) for part in (given.driver, given.pool, given.device))
    return BadRecord(
        f"{place}: how large a part of a GPU it is, is not known: {why}",
        code="unknown-share",
        hint="put the ResourceSlices and ResourceClaims into the stream before the Pods",
    )
