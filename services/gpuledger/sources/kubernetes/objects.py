"""What is read of Kubernetes objects: the fields that say who held which GPUs, and when.

The names are those of the API (``k8s.io/api/core/v1``, ``kueue.x-k8s.io/v1beta1`` and ``v1beta2``,
``scheduling.run.ai/v2alpha2``), in snake case. Everything else in an object is passed over unread.
"""

from typing import Annotated

import msgspec

from gpuledger.events.fields import Instant

Seconds = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Pods = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
Amount = str | int
"""A quantity as the API writes it; YAML may hold a bare number."""


class Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A part of an object."""


class Owner(Part, frozen=True):
    """An entry of ``metadata.ownerReferences``."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ManagedFields(Part, frozen=True):
    """When somebody last wrote a part of the object."""

    time: Instant | None = None


class Meta(Part, frozen=True):
    """``metadata``."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    creation_timestamp: Instant | None = None
    deletion_timestamp: Instant | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[Owner] | None = None
    managed_fields: list[ManagedFields] | None = None

    def label(self, key: str) -> str | None:
        """Return the value of a label, if it is set and not empty."""
        return (self.labels or {}).get(key) or None

    def annotation(self, key: str) -> str | None:
        """Return the value of an annotation, if it is set and not empty."""
        return (self.annotations or {}).get(key) or None


class Condition(Part, frozen=True):
    """An entry of ``status.conditions``: the newest value of its type and when it became that."""

    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: Instant | None = None


class Resources(Part, frozen=True):
    """What a container asks for."""

    requests: dict[str, Amount] | None = None
    limits: dict[str, Amount] | None = None


class Container(Part, frozen=True):
    """A container; an init container with restart policy ``Always`` runs beside the others."""

    resources: Resources | None = None
    restart_policy: str | None = None


class PodClaim(Part, frozen=True):
    """A ResourceClaim that a pod names, or one that is made for it alone and named in its status."""

    name: str = ""
    resource_claim_name: str | None = None


class PodSpec(Part, frozen=True):
    """``spec`` of a Pod or of its template."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    node_name: str | None = None
    node_selector: dict[str, str] | None = None
    scheduler_name: str | None = None
    priority_class_name: str | None = None
    priority: int | None = None
    active_deadline_seconds: Seconds | None = None
    resource_claims: list[PodClaim] | None = None


class Terminated(Part, frozen=True):
    """How a container ended."""

    reason: str = ""
    exit_code: int | None = None
    finished_at: Instant | None = None


class ContainerState(Part, frozen=True):
    """Whether a container has ended."""

    terminated: Terminated | None = None


class ContainerStatus(Part, frozen=True):
    """A container as the kubelet last saw it."""

    state: ContainerState | None = None


class PodStatus(Part, frozen=True):
    """``status`` of a Pod."""

    phase: str = ""
    reason: str = ""
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    start_time: Instant | None = None
    resource_claim_statuses: list[PodClaim] | None = None


class Pod(Part, frozen=True):
    """``v1`` Pod."""

    metadata: Meta
    spec: PodSpec
    status: PodStatus | None = None


class PodTemplate(Part, frozen=True):
    """The pods of a pod set."""

    spec: PodSpec | None = None


class PodSet(Part, frozen=True):
    """Pods of one shape in a Workload."""

    name: str = "main"
    count: Pods = 1
    min_count: Pods | None = None
    template: PodTemplate | None = None


class WorkloadSpec(Part, frozen=True):
    """``spec`` of a Workload."""

    pod_sets: list[PodSet] | None = None
    queue_name: str = ""
    priority: int | None = None
    active: bool | None = None
    maximum_execution_time_seconds: Seconds | None = None


class TopologyDomain(Part, frozen=True):
    """Where pods of a pod set go (v1beta1)."""

    values: list[str] | None = None
    count: Pods | None = None


class LevelValues(Part, frozen=True):
    """The domains of a slice, written without what they have in common (v1beta2)."""

    prefix: str = ""
    suffix: str = ""
    roots: list[str] | None = None
    universal_value: str | None = None

    def values(self) -> list[str]:
        """Return the names of the domains."""
        if self.universal_value is not None:
            return [self.universal_value]
        return [f"{self.prefix}{root}{self.suffix}" for root in self.roots or ()]


class TopologySlice(Part, frozen=True):
    """A part of a topology assignment (v1beta2)."""

    values_per_level: list[LevelValues] | None = None
    pod_counts: list[Pods] | None = None
    universal_pod_count: Pods | None = None


class Topology(Part, frozen=True):
    """Where the pods of a pod set go; with the level of the host, on which hosts."""

    levels: list[str] | None = None
    domains: list[TopologyDomain] | None = None
    slices: list[TopologySlice] | None = None


class Assignment(Part, frozen=True):
    """What a pod set was given: the sum over its pods, and the flavor of each resource."""

    name: str = "main"
    flavors: dict[str, str] | None = None
    resource_usage: dict[str, Amount] | None = None
    count: Pods | None = None
    topology_assignment: Topology | None = None


class Admission(Part, frozen=True):
    """What a Workload was given."""

    cluster_queue: str = ""
    pod_set_assignments: list[Assignment] | None = None


class Reclaimable(Part, frozen=True):
    """How many pods of a pod set need their GPUs no more."""

    name: str = "main"
    count: Pods = 0


class Eviction(Part, frozen=True):
    """How often a Workload was evicted for one reason."""

    count: Pods = 0


class SchedulingStats(Part, frozen=True):
    """Counts over the whole life of a Workload; older versions of Kueue have none."""

    evictions: list[Eviction] | None = None


class RequeueState(Part, frozen=True):
    """How often a Workload was put back because its pods did not become ready."""

    count: Pods | None = None


class WorkloadStatus(Part, frozen=True):
    """``status`` of a Workload."""

    conditions: list[Condition] | None = None
    admission: Admission | None = None
    requeue_state: RequeueState | None = None
    reclaimable_pods: list[Reclaimable] | None = None
    accumulated_past_execution_time_seconds: Seconds | None = None
    scheduling_stats: SchedulingStats | None = None
    cluster_name: str | None = None


class Workload(Part, frozen=True):
    """``kueue.x-k8s.io`` Workload."""

    metadata: Meta
    spec: WorkloadSpec
    status: WorkloadStatus | None = None


class GroupSpec(Part, frozen=True):
    """``spec`` of a PodGroup."""

    queue: str = ""
    priority_class_name: str = ""
    preemptibility: str = ""


class GroupResources(Part, frozen=True):
    """What the pods of a PodGroup ask for together."""

    requested: dict[str, Amount] | None = None


class GroupStatus(Part, frozen=True):
    """``status`` of a PodGroup."""

    resources_status: GroupResources | None = None


class PodGroup(Part, frozen=True):
    """``scheduling.run.ai`` PodGroup."""

    metadata: Meta
    spec: GroupSpec
    status: GroupStatus | None = None


class Taint(Part, frozen=True):
    """Keeps pods away from a node."""

    key: str = ""
    time_added: Instant | None = None


class NodeSpec(Part, frozen=True):
    """``spec`` of a Node."""

    unschedulable: bool | None = None
    taints: list[Taint] | None = None


class NodeStatus(Part, frozen=True):
    """``status`` of a Node."""

    capacity: dict[str, Amount] | None = None
    conditions: list[Condition] | None = None


class Node(Part, frozen=True):
    """``v1`` Node."""

    metadata: Meta
    spec: NodeSpec | None = None
    status: NodeStatus | None = None
