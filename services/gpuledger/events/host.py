"""Facts about hosts: the inventory and its health."""

from typing import Literal

import msgspec

from gpuledger.events.fields import Count, Instant, Name

HostState = Literal["healthy", "unhealthy", "maintenance", "draining"]


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
    """

    cluster: Name
    host: Name
    gpus: Count
    gpu_model: str
    gpu_uuids: list[str] | None = None
    state: HostState | None = None
    reason: str | None = None
    evidence_at: Instant | None = None


class Registered(HostFact, frozen=True, kw_only=True, omit_defaults=True):
    """The host is installed from now on."""


class StateChanged(HostFact, frozen=True, kw_only=True, omit_defaults=True):
    """The host's health changed."""


class Retired(HostFact, frozen=True, kw_only=True, omit_defaults=True):
    """The host is no longer installed."""
