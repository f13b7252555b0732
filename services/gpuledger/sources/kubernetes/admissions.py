"""What a Kueue Workload asks for and what it was given: GPUs, their model, the hosts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from gpuledger.sources.kubernetes.objects import (
    Admission,
    Amount,
    Assignment,
    Reclaimable,
    Topology,
    Workload,
    WorkloadSpec,
)
from gpuledger.sources.kubernetes.quantities import asked_milli, gpus_milli
from gpuledger.sources.values import name

HOSTNAME = "kubernetes.io/hostname"


@dataclass(slots=True)
class Placement:
    """GPUs of one model.

    Args:
        gpus_milli: How many, in milli-GPU.
        model: The flavor that they are of, where it is known.
        hosts: Where they are, where it is known.
        host_gpus_milli: What each of the hosts gives, where they do not all give as much and it is known.
    """

    gpus_milli: int
    model: str | None
    hosts: list[str]
    host_gpus_milli: dict[str, int] | None = None


def asked(workload: Workload) -> int:
    """Return the GPUs that all pods together ask for, in milli-GPU.

    Raises:
        BadRecord: When a quantity cannot be read.
    """
    return sum(
        pod_set.count * asked_milli(pod_set.template.spec)
        for pod_set in workload.spec.pod_sets or ()
        if pod_set.template is not None and pod_set.template.spec is not None
    )


def placements(
    spec: WorkloadSpec, admission: Admission, reclaimable: Sequence[Reclaimable] = ()
) -> dict[str, Placement]:
    """Return what an admission gave: one part without a name, or one named after each GPU model.

    Args:
        spec: What was asked for; says how many pods there are where the admission does not.
        admission: What was given, summed over the pods that were admitted.
        reclaimable: Pods that are through, whose GPUs others may have.

    Raises:
        BadRecord: When a quantity cannot be read.
    """
    counts = {pod_set.name: pod_set.count for pod_set in spec.pod_sets or ()}
    through = {pods.name: pods.count for pods in reclaimable}
    found: dict[str | None, Placement] = {}
    spread: dict[str | None, list[dict[str, int] | None]] = {}
    for given in admission.pod_set_assignments or ():
        held = gpus_milli(given.resource_usage or {})
        if not held:
            continue
        pods = counts.get(given.name, 0) if given.count is None else given.count
        left = max(pods - through.get(given.name, 0), 0)
        on_hosts = _pods_by_host(given.topology_assignment)
        is_told = left == pods > 0 and sum(on_hosts.values()) == pods and held % pods == 0
        each = {host: held // pods * count for host, count in on_hosts.items()} if is_told else None
        held = held * left // pods if pods else held
        model = _flavor(given)
        placement = found.setdefault(model, Placement(0, model, []))
        placement.gpus_milli += held
        placement.hosts = sorted({*placement.hosts, *on_hosts})
        spread.setdefault(model, []).append(each)
    for model, parts in spread.items():
        found[model].host_gpus_milli = uneven(parts)
    if len(found) == 1:
        return {"": next(iter(found.values()))}
    return {f"-{model or 'other'}": placement for model, placement in found.items()}


def parts_of_sets(admission: Admission) -> dict[str, str]:
    """Return pod set -> the part of the run that its pods are in, as ``placements`` names it.

    Raises:
        BadRecord: When a quantity cannot be read.
    """
    models = {
        given.name: _flavor(given)
        for given in admission.pod_set_assignments or ()
        if gpus_milli(given.resource_usage or {})
    }
    is_one = len(set(models.values())) == 1
    return {pod_set: "" if is_one else f"-{model or 'other'}" for pod_set, model in models.items()}


def _flavor(given: Assignment) -> str | None:
    """Return the flavor of the GPUs of a pod set."""
    usage: dict[str, Amount] = given.resource_usage or {}
    for resource, flavor in (given.flavors or {}).items():
        if resource in usage and gpus_milli({resource: usage[resource]}):
            return name("status.admission.flavors", flavor)
    return None


def uneven(parts: Sequence[Mapping[str, int] | None]) -> dict[str, int] | None:
    """Return what hosts give together, where they do not all give as much; None where they do, or a part is not known.

    Args:
        parts: Host -> milli-GPU.
    """
    each: Counter[str] = Counter()
    for part in parts:
        if part is None:
            return None
        each.update(part)
    return dict(sorted(each.items())) if len(set(each.values())) > 1 and all(each.values()) else None


def _pods_by_host(topology: Topology | None) -> dict[str, int]:
    """Return host -> pods of a topology assignment, when its lowest level is the host; 0 pods where nothing says."""
    if topology is None or not topology.levels or topology.levels[-1] != HOSTNAME:
        return {}
    found: Counter[str] = Counter()
    for domain in topology.domains or ():
        if domain.values:
            found[name("topologyAssignment", domain.values[-1])] += domain.count or 0
    for part in topology.slices or ():
        hosts = part.values_per_level[-1].values() if part.values_per_level else []
        counts = part.pod_counts or [part.universal_pod_count or 0] * len(hosts)
        for host, count in zip_longest(hosts, counts[: len(hosts)], fillvalue=0):
            found[name("topologyAssignment", str(host))] += int(count)
    return dict(found)
