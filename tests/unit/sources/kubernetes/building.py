"""Objects as the API prints them, made for tests: nothing of them was recorded from a cluster."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpuledger.events.envelope import Event
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.registry import source

Object = dict[str, Any]

UID = "8f14e45f-0000-4000-8000-"
CREATED = "2026-10-31T20:00:00Z"


def meta(name: str, created: str = CREATED, namespace: str | None = "team-a", **more: Any) -> Object:  # noqa: ANN401
    number = sum(name.encode()) * 1000 + len(name)
    found: Object = {"name": name, "uid": f"{UID}{number:012d}", "creationTimestamp": created, **more}
    return found | ({} if namespace is None else {"namespace": namespace})


def conditions(**types: tuple[str, str, str]) -> list[Object]:
    return [
        {"type": type_, "status": status, "reason": reason, "message": "", "lastTransitionTime": at}
        for type_, (status, reason, at) in types.items()
    ]


def template(gpus: int | str, resource: str = "nvidia.com/gpu") -> Object:
    amount = {resource: str(gpus)}
    container = {
        "name": "main",
        "image": "registry.example/train:1",
        "resources": {"requests": amount, "limits": amount},
    }
    return {"metadata": {}, "spec": {"containers": [container], "restartPolicy": "Never"}}


def pod_set(name: str, count: int, gpus: int | str, **more: Any) -> Object:  # noqa: ANN401
    return {"name": name, "count": count, "template": template(gpus), **more}


def assignment(name: str, count: int, usage: int | str, flavor: str, **more: Any) -> Object:  # noqa: ANN401
    return {
        "name": name,
        "count": count,
        "flavors": {"cpu": "any", "nvidia.com/gpu": flavor},
        "resourceUsage": {"cpu": "8", "nvidia.com/gpu": str(usage)},
        **more,
    }


def admission(*assignments: Object) -> Object:
    return {"clusterQueue": "research", "podSetAssignments": list(assignments)}


def workload(
    name: str,
    pod_sets: Sequence[Object],
    status: Object | None,
    *,
    version: str = "v1beta2",
    metadata: Object | None = None,
    **spec: Any,  # noqa: ANN401
) -> Object:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": f"job-{name}", "controller": True}
    found = meta(f"job-{name}", labels={"kueue.x-k8s.io/job-uid": f"job-{name}"}, ownerReferences=[owner]) | (
        metadata or {}
    )
    asked = {"active": True, "priority": 0, "queueName": "training", "podSets": list(pod_sets), **spec}
    whole = {
        "apiVersion": f"kueue.x-k8s.io/{version}",
        "kind": "Workload",
        "metadata": found,
        "spec": asked,
    }
    return whole | ({} if status is None else {"status": status})


def terminated(finished: str | None, code: int = 0, reason: str = "Completed") -> Object:
    state = {"exitCode": code, "reason": reason, "startedAt": CREATED, "finishedAt": finished}
    return {"name": "main", "ready": False, "restartCount": 0, "state": {"terminated": state}}


def pod(
    name: str,
    gpus: int | str,
    status: Object | None,
    *,
    resource: str = "nvidia.com/gpu",
    node: str | None = "node-1",
    metadata: Object | None = None,
    **spec: Any,  # noqa: ANN401
) -> Object:
    asked = template(gpus, resource)["spec"] | ({} if node is None else {"nodeName": node}) | spec
    whole = {"apiVersion": "v1", "kind": "Pod", "metadata": meta(name) | (metadata or {}), "spec": asked}
    return whole | ({} if status is None else {"status": status})


def bound(at: str, phase: str = "Running", **more: Any) -> Object:  # noqa: ANN401
    return {"phase": phase, "conditions": conditions(PodScheduled=("True", "", at)), **more}


def node(
    name: str,
    gpus: int | str = 8,
    labels: Object | None = None,
    ready: tuple[str, str, str] = ("True", "KubeletReady", CREATED),
    **more: Any,  # noqa: ANN401
) -> Object:
    known = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta(name, namespace=None, labels=known if labels is None else labels),
        "status": {
            "capacity": {"cpu": "96", "nvidia.com/gpu": str(gpus)},
            "conditions": conditions(Ready=ready),
        },
        **more,
    }


def group(name: str, requested: Object | None, queue: str = "team-a", **more: Any) -> Object:  # noqa: ANN401
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": meta(name) | more,
        "spec": {"minMember": 1, "queue": queue, "priorityClassName": "train"},
        "status": {"phase": "Running", "resourcesStatus": {"requested": requested}},
    }


def claim(
    name: str,
    devices: Sequence[str] | None,
    *,
    driver: str = "gpu.nvidia.com",
    device_class: str = "gpu.nvidia.com",
    count: int = 1,
    mode: str = "ExactCount",
    admin: bool = False,
    capacity: Object | None = None,
    version: str = "v1",
) -> Object:
    """A ResourceClaim; with devices it was given them, of the pool of node-1."""
    exact = {"deviceClassName": device_class, "allocationMode": mode, "adminAccess": admin, "count": count}
    request = {"name": "r", **exact} if version == "v1beta1" else {"name": "r", "exactly": exact}
    found: Object = {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": meta(name),
        "spec": {"devices": {"requests": [request]}},
        "status": {},
    }
    if devices is not None:
        more = {"adminAccess": True} if admin else {}
        more |= {"consumedCapacity": capacity} if capacity else {}
        results = [
            {"request": "r", "driver": driver, "pool": "node-1", "device": device, **more}
            for device in devices
        ]
        found["status"] = {"allocation": {"devices": {"results": results}}}
    return found


def claiming(
    name: str,
    named: str,
    status: Object | None,
    *,
    gpus: int = 0,
    **more: Any,  # noqa: ANN401
) -> Object:
    """A pod that names a claim."""
    return pod(name, gpus, status, resourceClaims=[{"name": "gpus", "resourceClaimName": named}], **more)


def offered(
    pool: str, devices: dict[str, Object], *, driver: str = "gpu.nvidia.com", version: str = "v1"
) -> Object:
    """A ResourceSlice of NVIDIA's driver: GPUs, unless their attributes say otherwise."""
    usual = {"type": "gpu", "productName": "NVIDIA H100 80GB HBM3"}
    return sliced(
        pool, {device: ({**usual, **said}, {}) for device, said in devices.items()}, driver, version=version
    )


def sliced(
    pool: str,
    devices: dict[str, tuple[Object, Object]],
    driver: str,
    *,
    named: str = "slice",
    count: int = 1,
    version: str = "v1",
) -> Object:
    """A ResourceSlice: devices by name, each with its attributes and capacities."""
    listed: list[Object] = []
    for device, (words, capacity) in devices.items():
        attributes: Object = {
            key: {"bool": value} if isinstance(value, bool) else {"string": value}
            for key, value in words.items()
        } | {"index": {"int": 0}}
        inner: Object = {"attributes": attributes}
        if capacity:
            bare = version == "v1alpha3"
            inner["capacity"] = capacity if bare else {key: {"value": has} for key, has in capacity.items()}
        is_basic = version in {"v1alpha3", "v1beta1"}
        listed.append({"name": device, "basic": inner} if is_basic else {"name": device, **inner})
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceSlice",
        "metadata": meta(f"{pool}-{named}", namespace=None),
        "spec": {
            "driver": driver,
            "nodeName": pool,
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": count},
            "devices": listed,
        },
    }


def change(type_: str, found: Object, observed: str | None = None) -> Object:
    line = {"type": type_, "object": found}
    return line | ({} if observed is None else {"observedAt": observed})


def lines(*objects: Object) -> bytes:
    return b"".join(json.dumps(found).encode() + b"\n" for found in objects)


def read(
    tmp_path: Path, *objects: Object, name: str = "pods", options: ImportOptions | None = None
) -> list[Translated | Fault]:
    path = tmp_path / "stream.ndjson"
    path.write_bytes(lines(*objects))
    return list(source(name).read(path, options or ImportOptions()))


def events(items: Sequence[Translated | Fault]) -> list[Event]:
    faults = [item.message for item in items if isinstance(item, Fault)]
    assert not faults, faults
    return [event for item in items if isinstance(item, Translated) for event, _ in item.events]


def odd(items: Sequence[Translated | Fault]) -> list[str]:
    return [one.code for item in items if isinstance(item, Translated) for one in item.anomalies]


def told(found: Sequence[Event]) -> list[tuple[str, int]]:
    """Return the names and times of facts, each once."""
    return list(dict.fromkeys((event.name, event.at_s) for event in found))
