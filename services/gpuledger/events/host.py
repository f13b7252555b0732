"""Facts about hosts: the inventory and its health."""

from typing import Literal

import msgspec

from gpuledger.events.fields import Count, Instant, Label, Name, Reason

HostState = Literal["healthy", "reserved", "unhealthy", "maintenance", "draining"]
"""A host that is reserved is healthy, and kept for some: what they leave empty is not free."""

HealthKind = Literal["xid", "remap_pending", "remap_failed", "lost", "clean"]


class HostFact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What every fact about a host names.

    Args:
        cluster: The cluster, which is also the book.
        host: The host's id within the cluster.
        gpus: GPUs installed in it (whole devices).
        gpu_model: Their model.
        gpu_uuids: The devices, where known.
        state: Its health, where the fact speaks of it.
        reason: Why, as a short code.
        evidence_at: When the evidence was first seen.
        noticed_at: When it was understood, where that was later: the difference is the detection lag.
        basis: How many observations it follows from; of two facts for one instant the one with more counts.
    """

    cluster: Name
    host: Name
    gpus: Count
    gpu_model: Label
    gpu_uuids: list[Label] | None = None
    state: HostState | None = None
    reason: Reason | None = None
    evidence_at: Instant | None = None
    noticed_at: Instant | None = None
    basis: Count | None = None


class Registered(HostFact, frozen=True, kw_only=True, omit_defaults=True):
    """The host is installed from now on.

    Args:
        partial_use: Whether the other devices may be used while some are in trouble, from now on; when it is left out
            that stays as it was, and at first it is not so.
    """

    partial_use: bool | None = None


class StateChanged(HostFact, frozen=True, kw_only=True, omit_defaults=True):
    """The host's health changed."""


class Retired(HostFact, frozen=True, kw_only=True, omit_defaults=True):
    """The host is no longer installed."""


class HealthObserved(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that tells of a device's health was seen. What it means is policy data, and may change.

    Args:
        cluster: The cluster, which is also the book.
        host: The host's id within the cluster.
        kind: ``xid``: the driver reported an error; ``remap_pending``: rows wait for a reset to be remapped;
            ``remap_failed``: rows could not be; ``lost``: the driver cannot reach the device; ``clean``: a check
            found nothing wrong.
        gpu_uuid: The device, where it is known.
        pci: Its place, such as ``00000000:9B:00.0``: the second key, for logs that name no device.
        code: The XID.
    """

    cluster: Name
    host: Name
    kind: HealthKind
    gpu_uuid: Name | None = None
    pci: Name | None = None
    code: Count | None = None

    def __post_init__(self) -> None:
        """Refuse an error without its code, and trouble of no device; a whole host may be clean."""
        if (self.kind == "xid") != (self.code is not None):
            raise ValueError("code stands with kind xid, and with no other")
        if self.kind != "clean" and self.gpu_uuid is None and self.pci is None:
            raise ValueError("neither gpu_uuid nor pci says which device")
