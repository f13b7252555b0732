from pathlib import Path

import pytest
from tests.unit.sources.kubernetes.building import Object, bound, change, events, node, odd, pod, read, told

from gpuledger.events.host import Registered, StateChanged
from gpuledger.events.workload import Started
from gpuledger.sources.protocol import Fault

BEGAN = 1_793_476_800
AT_5, AT_9 = "2026-10-31T20:05:00Z", "2026-10-31T20:09:00Z"


def test_a_node_is_installed_since_it_was_made(tmp_path: Path) -> None:
    (event,) = events(read(tmp_path, node("node-1")))
    assert isinstance(event.data, Registered)
    assert (event.source, event.at_s) == ("kubernetes/kubernetes", BEGAN)
    assert (event.data.host, event.data.gpus, event.data.gpu_model) == ("node-1", 8, "NVIDIA-H100-80GB-HBM3")


@pytest.mark.parametrize(
    ("labels", "capacity", "gpus", "model"),
    [
        (
            {"nvidia.com/gpu.count": "8", "nvidia.com/gpu.product": "A100"},
            {"nvidia.com/mig-1g.10gb": "56"},
            8,
            "A100",
        ),
        (
            {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.product": "A100-SHARED"},
            {"nvidia.com/gpu": "32"},
            8,
            "A100",
        ),
        (
            {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.vram": "192G"},
            {"amd.com/gpu": "7", "amd.com/spx_nps1": "1", "amd.com/cpx_nps4": "0"},
            8,
            "AMD_Instinct_MI300X_OAM",
        ),
        (
            {
                "amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM",
                "amd.com/compute-memory-partition": "cpx_nps4",
            },
            {"amd.com/gpu": "64"},
            8,
            "AMD_Instinct_MI300X_OAM",
        ),
        ({"alibabacloud.com/gpu-card-model": "T4"}, {"alibabacloud.com/gpu-count": "2"}, 2, "T4"),
    ],
)
def test_gpus_are_counted_as_devices_however_they_are_offered(
    tmp_path: Path, labels: Object, capacity: Object, gpus: int, model: str
) -> None:
    (event,) = events(read(tmp_path, node("n", labels=labels, status={"capacity": capacity})))
    assert isinstance(event.data, Registered)
    assert (event.data.gpus, event.data.gpu_model) == (gpus, model)


def test_a_node_without_gpus_is_passed_over(tmp_path: Path) -> None:
    assert read(tmp_path, node("n", 0)) == []


def test_slices_that_are_offered_as_devices_do_not_say_how_many_gpus_there_are(tmp_path: Path) -> None:
    (fault,) = read(tmp_path, node("n", 7, {"nvidia.com/gpu.product": "A100-MIG-1g.10gb"}))
    assert isinstance(fault, Fault)
    assert (fault.code, "142 milli-GPU" in fault.message) == ("shared-devices", True)


def test_partitions_do_not_say_how_many_gpus_they_are_cut_from(tmp_path: Path) -> None:
    (fault,) = read(tmp_path, node("n", labels={}, status={"capacity": {"amd.com/cpx_nps4": "64"}}))
    assert isinstance(fault, Fault)
    assert (fault.code, "64 partitions" in fault.message) == ("shared-devices", True)


@pytest.mark.parametrize(
    ("model", "mode", "milli"),
    [
        ("AMD_Instinct_MI300A", "cpx_nps1", 166),
        ("AMD_Instinct_MI355X_OAM", "CPX_NPS2", 125),
        ("any", "dpx_nps2", 500),
        ("any", "spx_nps1", 1000),
    ],
)
def test_a_device_of_a_node_whose_gpus_are_partitioned_is_a_part(
    tmp_path: Path, model: str, mode: str, milli: int
) -> None:
    labels = {"amd.com/gpu.product-name": model, "amd.com/compute-memory-partition": mode}
    held = pod("x", 2, bound(AT_5), resource="amd.com/gpu", node="n")
    items = read(tmp_path, node("n", labels=labels, status={"capacity": {"amd.com/gpu": "24"}}), held)
    assert [e.data.gpus_milli for e in events(items) if isinstance(e.data, Started)] == [2 * milli]


def test_partitions_of_a_model_that_is_not_known_are_not_guessed(tmp_path: Path) -> None:
    labels = {"amd.com/gpu.product-name": "MI999", "amd.com/compute-memory-partition": "cpx_nps1"}
    (fault,) = read(tmp_path, node("n", labels=labels, status={"capacity": {"amd.com/gpu": "24"}}))
    assert isinstance(fault, Fault)
    assert fault.code == "unknown-share"


def test_a_model_that_is_not_said_is_unknown_and_reported(tmp_path: Path) -> None:
    items = read(tmp_path, node("n", labels={}))
    (event,) = events(items)
    assert isinstance(event.data, Registered)
    assert (event.data.gpu_model, odd(items)) == ("unknown", ["no-gpu-model"])


def test_health_is_told_when_it_changes(tmp_path: Path) -> None:
    lost = ("Unknown", "NodeStatusUnknown", AT_5)
    items = read(
        tmp_path,
        node("n"),
        node("n", ready=lost),
        node("n", ready=lost),
        node("n", ready=("True", "KubeletReady", AT_9)),
    )
    changes = [
        (e.at_s, e.data.state, e.data.reason) for e in events(items) if isinstance(e.data, StateChanged)
    ]
    assert changes == [(BEGAN + 300, "unhealthy", "NodeStatusUnknown"), (BEGAN + 540, "healthy", "Ready")]


def test_a_cordoned_node_drains_until_it_is_not(tmp_path: Path) -> None:
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": AT_5}
    items = read(
        tmp_path,
        node("n"),
        node("n", spec={"unschedulable": True, "taints": [taint]}),
        change("MODIFIED", node("n"), AT_9),
    )
    changes = [(e.at_s, e.data.state) for e in events(items) if isinstance(e.data, StateChanged)]
    assert changes == [(BEGAN + 300, "draining"), (BEGAN + 540, "healthy")]


def test_gpus_that_come_or_go_are_told_when_that_was_seen(tmp_path: Path) -> None:
    items = read(tmp_path, node("n"), change("MODIFIED", node("n", 7), AT_5))
    assert told(events(items)) == [("host.registered", BEGAN), ("host.registered", BEGAN + 300)]
    assert odd(read(tmp_path, node("n"), node("n", 7))) == ["changed-at-unknown-time"]


def test_a_deleted_node_is_retired(tmp_path: Path) -> None:
    items = read(tmp_path, node("n"), change("DELETED", node("n"), AT_5))
    assert told(events(items))[-1] == ("host.retired", BEGAN + 300)
    assert odd(read(tmp_path, change("DELETED", node("n")))) == ["deleted-at-unknown-time"]
