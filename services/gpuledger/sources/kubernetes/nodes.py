"""Nodes: what is installed, whether it is healthy, and what one device of a node is."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

from gpuledger.events.host import HostState, Registered, Retired, StateChanged
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.clock import instant
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.kubernetes.naming import MADE, Told
from gpuledger.sources.kubernetes.objects import Amount, Node, NodeSpec, NodeStatus
from gpuledger.sources.kubernetes.quantities import (
    WHOLE_GPUS,
    partition_mode,
    partitions_of,
    slices,
    whole,
    whole_mib,
)
from gpuledger.sources.kubernetes.reading import Seen, at_s, condition, decode, since_s, written_s
from gpuledger.sources.values import Odd, name

UNKNOWN_MODEL = "unknown"
CORDON = "node.kubernetes.io/unschedulable"

_COUNT, _MEMORY, _REPLICAS = "nvidia.com/gpu.count", "nvidia.com/gpu.memory", "nvidia.com/gpu.replicas"
_SHARED = "-SHARED"
_PARTITION, _NOT_PARTITIONED = "amd.com/compute-memory-partition", "spx"
_PLAIN_COUNTS = ("alibabacloud.com/gpu-count",)
_MODELS = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "alibabacloud.com/gpu-card-model",
    "cloud.google.com/gke-accelerator",
)
_MIG_PRODUCT = re.compile(r"(?P<model>.+)-MIG-(?P<profile>[0-9]+g\.[0-9]+gb\S*)")


@dataclass(frozen=True, slots=True)
class Device:
    """What one ``nvidia.com/gpu`` of a node is.

    Args:
        milli: In milli-GPU: 1000, or less where a node offers slices or shares as devices.
        memory_mib: Its memory, where the node says so.
        model: Its model, where the node says so.
    """

    milli: int = GPU_MILLI
    memory_mib: int | None = None
    model: str | None = None


_PLAIN = Device()


class Nodes:
    """Reads Nodes.

    Args:
        cluster: The cluster.
    """

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._source = f"kubernetes/{cluster}"
        self._told: dict[str, Told] = {}
        self._states: dict[str, HostState] = {}
        self._devices: dict[str, Device] = {}

    def device(self, node: str) -> Device:
        """Return what a device of a node is; a whole GPU of unknown model when the node was not seen."""
        return self._devices.get(node, _PLAIN)

    def facts(self, seen: Seen) -> tuple[list[MADE], list[Odd]]:
        """Return what follows from a state of a Node; nothing for one without GPUs.

        Raises:
            BadRecord: When it cannot be understood.
        """
        node = decode(Node, seen.raw)
        host = name("metadata.name", node.metadata.name)
        labels = node.metadata.labels or {}
        device = _device(labels)
        gpus = _installed(labels, (node.status or NodeStatus()).capacity or {}, device)
        if not gpus:
            return [], []
        self._devices[host] = device
        odd: list[Odd] = []
        if device.model is None:
            odd.append(("no-gpu-model", f"metadata.labels: none of {', '.join(_MODELS)} says the model"))
        installed = Registered(
            cluster=self._cluster, host=host, gpus=gpus, gpu_model=device.model or UNKNOWN_MODEL
        )
        told = self._told.get(host)
        if told is None:
            told = self._told[host] = Told(self._source, f"host/{host}")
        changed_s = seen.observed_s or written_s(node.metadata)
        self._register(told, node, installed, changed_s, odd)
        if seen.is_gone:
            self._retire(told, node, installed, changed_s, odd)
        else:
            self._state(told, node, installed, changed_s)
        return told.take(), odd

    def _register(
        self, told: Told, node: Node, installed: Registered, changed_s: int | None, odd: list[Odd]
    ) -> None:
        """Tell what is installed: since the node was made, or since it was seen to change."""
        what = f"registered/{installed.gpus}x{installed.gpu_model}"
        if not any(known.startswith("registered/") for known in told.known):
            told.tell(what, at_s(node.metadata.creation_timestamp) or 0, installed)
        elif what not in told.known:
            if changed_s is None:
                odd.append(("changed-at-unknown-time", f"{installed.host}: its GPUs changed; not booked"))
            else:
                told.tell(what, changed_s, installed)

    def _retire(
        self, told: Told, node: Node, installed: Registered, changed_s: int | None, odd: list[Odd]
    ) -> None:
        gone_s = at_s(node.metadata.deletion_timestamp) or changed_s
        if gone_s is None:
            odd.append(("deleted-at-unknown-time", f"{installed.host}: stays in the inventory"))
            return
        told.tell(f"retired/{gone_s}", gone_s, Retired(**_named(installed), reason="deleted"))
        del self._told[installed.host]
        self._states.pop(installed.host, None)
        self._devices.pop(installed.host, None)

    def _state(self, told: Told, node: Node, installed: Registered, changed_s: int | None) -> None:
        """Tell of a change of health; a node is healthy until it says otherwise."""
        before = self._states.get(installed.host, "healthy")
        state, since, reason = _health(node, changed_s)
        if state == before or since is None:
            return
        if before == "draining" and state == "healthy":
            since = changed_s or since  # it was ready all the while
        self._states[installed.host] = state
        changed = StateChanged(**_named(installed), state=state, reason=reason, evidence_at=instant(since))
        told.tell(f"{state}/{since}", since, changed)


class _Named(TypedDict):
    cluster: str
    host: str
    gpus: int
    gpu_model: str


def _named(installed: Registered) -> _Named:
    return {
        "cluster": installed.cluster,
        "host": installed.host,
        "gpus": installed.gpus,
        "gpu_model": installed.gpu_model,
    }


def _health(node: Node, changed_s: int | None) -> tuple[HostState, int | None, str]:
    """Return the health of a node, since when, and why; an unknown moment is None."""
    ready = condition((node.status or NodeStatus()).conditions, "Ready")
    spec = node.spec or NodeSpec()
    if ready is not None and ready.status != "True":
        return "unhealthy", since_s(ready, "Ready"), ready.reason or "NotReady"
    if spec.unschedulable:
        added = next((taint.time_added for taint in spec.taints or () if taint.key == CORDON), None)
        return "draining", at_s(added) or changed_s, "Unschedulable"
    return "healthy", None if ready is None else since_s(ready, "Ready"), "Ready"


def _device(labels: Mapping[str, str]) -> Device:
    """Return what one device of a node is, by the labels of GPU Feature Discovery.

    Raises:
        BadRecord: When a label is no number, or the profile of the slices is not known.
    """
    model = next((labels[key] for key in _MODELS if labels.get(key)), None)
    milli = GPU_MILLI
    if model is not None:
        name("metadata.labels", model)
        model = model.removesuffix(_SHARED)
        if sliced := _MIG_PRODUCT.fullmatch(model):
            model, milli = sliced["model"], slices(sliced["profile"], model=sliced["model"])
    milli //= _partitions(labels, model)
    if replicas := whole(_REPLICAS, labels.get(_REPLICAS, 1)):
        milli //= replicas
    memory = labels.get(_MEMORY)
    return Device(milli, None if memory is None else whole_mib(_MEMORY, memory), model)


def _partitions(labels: Mapping[str, str], model: str | None) -> int:
    """Return how many ``amd.com/gpu`` a GPU is on a node whose GPUs are all partitioned alike; 1 on any other.

    Raises:
        BadRecord: When the mode does not say it, and neither does the model.
    """
    mode = partition_mode(labels.get(_PARTITION, ""))
    return 1 if mode is None else partitions_of(_PARTITION, mode, model or "")


def _installed(labels: Mapping[str, str], capacity: Mapping[str, Amount], device: Device) -> int:
    """Return how many physical GPUs a node has.

    Raises:
        BadRecord: When a number cannot be read, or the node offers slices as devices and so does not say.
    """
    for key in _PLAIN_COUNTS:
        if key in capacity:
            return whole(key, capacity[key])
    offered = sum(whole(key, capacity[key]) for key in WHOLE_GPUS if key in capacity)
    sliced = any(_MIG_PRODUCT.fullmatch(labels.get(key, "").removesuffix(_SHARED)) for key in _MODELS)
    if sliced and offered:
        raise _uncounted(WHOLE_GPUS[0], f"{offered} slices of {device.milli} milli-GPU")
    for key in capacity:
        if (mode := partition_mode(key)) and (count := whole(key, capacity[key])):
            if mode != _NOT_PARTITIONED:
                raise _uncounted(key, f"{count} partitions")
            offered += count
    if _COUNT in labels:
        return whole(_COUNT, labels[_COUNT])
    replicas = max(whole(_REPLICAS, labels.get(_REPLICAS, 1)), 1)
    return offered // (replicas * _partitions(labels, device.model))


def _uncounted(resource: str, offered: str) -> BadRecord:
    return BadRecord(
        f"{resource}: {offered}; the number of GPUs is not said",
        code="shared-devices",
        hint="write the node's GPUs into an inventory file (gpuledger inventory apply)",
    )
