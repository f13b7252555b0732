from pathlib import Path

import msgspec
import pytest
from tests.unit.sources.kubernetes.building import (
    UID,
    Object,
    admission,
    assignment,
    bound,
    change,
    conditions,
    events,
    node,
    odd,
    pod,
    pod_set,
    read,
    told,
    workload,
)

from gpuledger.events.workload import Located, Started, Submitted
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.jobs import Teams
from gpuledger.sources.kubernetes.claims import Claims
from gpuledger.sources.kubernetes.naming import MADE
from gpuledger.sources.kubernetes.nodes import Device
from gpuledger.sources.kubernetes.objects import Meta
from gpuledger.sources.kubernetes.pods import Pods
from gpuledger.sources.kubernetes.reading import Seen
from gpuledger.sources.kubernetes.seats import Seat
from gpuledger.sources.kubernetes.sharing import Shares
from gpuledger.sources.protocol import Fault, Translated
from gpuledger.sources.registry import source

BEGAN = 1_793_476_800  # 2026-10-31T20:00:00Z
AT_5, AT_9 = "2026-10-31T20:05:00Z", "2026-10-31T20:09:00Z"


def test_a_pod_is_a_workload_with_one_run(tmp_path: Path) -> None:
    found = events(
        read(
            tmp_path, node("node-1"), pod("x", 2, bound(AT_5), priority=7, schedulerName="default-scheduler")
        )
    )
    submitted, started = (event.data for event in found[1:])
    assert isinstance(submitted, Submitted)
    assert isinstance(started, Started)
    assert submitted.labels == {"namespace": "team-a", "scheduler": "default-scheduler"}
    assert (submitted.account, submitted.priority, submitted.gpus_milli) == ("kubernetes/team-a", 7, 2000)
    assert (started.run, started.hosts, started.gpu_model) == ("1", ["node-1"], "NVIDIA-H100-80GB-HBM3")
    assert submitted.workload == started.workload
    assert told(found)[1:] == [("workload.submitted", BEGAN), ("workload.started", BEGAN + 300)]


def test_a_pod_without_gpus_is_passed_over(tmp_path: Path) -> None:
    assert read(tmp_path, pod("cpu", 8, bound(AT_5), resource="cpu")) == []


def test_a_pod_of_a_queue_is_booked_to_it(tmp_path: Path) -> None:
    found = pod("x", 1, bound(AT_5), metadata={"labels": {"kai.scheduler/queue": "vision"}})
    assert events(read(tmp_path, found))[0].data.account == "kubernetes/vision"  # type: ignore[attr-defined]


def test_pods_of_a_group_are_its_runs(tmp_path: Path) -> None:
    grouped = {"annotations": {"pod-group-name": "pg-1"}}
    items = read(
        tmp_path, pod("a", 1, bound(AT_5), metadata=grouped), pod("b", 1, None, metadata=grouped, node=None)
    )
    event, located = events(items)
    assert isinstance(event.data, Started)
    assert isinstance(located.data, Located)
    assert (located.data.workload, located.data.run) == ("team-a/pg-1", event.data.run)
    assert located.data.handles == ["pod/team-a/a"]
    assert (event.data.workload, event.data.account) == ("team-a/pg-1", None)
    assert event.data.run.startswith(UID)
    assert odd(items) == ["no-queue"]
    gone = change("DELETED", pod("b", 1, None, metadata=grouped, node=None), AT_9)
    assert events(read(tmp_path, gone)) == []


@pytest.mark.parametrize(
    "marked",
    [
        {"labels": {"kueue.x-k8s.io/managed": "true"}},
        {"labels": {"kueue.x-k8s.io/podset": "main"}},
        {"annotations": {"kueue.x-k8s.io/workload": "w"}},
        {"namespace": "kai-resource-reservation"},
    ],
)
def test_pods_that_others_stand_for_are_passed_over(tmp_path: Path, marked: Object) -> None:
    assert read(tmp_path, pod("x", 1, bound(AT_5), metadata=marked)) == []


OWNED = {"ownerReferences": [{"kind": "Job", "name": "train", "uid": "job-train", "controller": True}]}


def admitted(at: str, **more: Object) -> Object:
    given = admission(
        *(assignment(name, 1, 8, flavor) for name, flavor in (("main", "h100"), *more.pop("and", ())))
    )
    status = {"admission": given, "conditions": conditions(Admitted=("True", "Admitted", at))}
    return workload("train", [pod_set("main", 1, 8)], status | more)


def located(items: list[Translated | Fault]) -> list[tuple[str, str, list[str]]]:
    return [
        (e.data.workload, e.data.run, e.data.handles) for e in events(items) if isinstance(e.data, Located)
    ]


@pytest.mark.parametrize(
    "marked",
    [
        OWNED,
        {"annotations": {"kueue.x-k8s.io/workload": "job-train"}},
        {"labels": {"kueue.x-k8s.io/prebuilt-workload-name": "job-train"}},
    ],
    ids=["by its job", "by the name of the workload", "by a workload made before"],
)
def test_a_pod_of_a_kueue_workload_is_what_hosts_call_its_run(tmp_path: Path, marked: Object) -> None:
    found = pod("x", 1, bound(AT_5), metadata=marked)
    items = read(tmp_path, admitted(AT_5), found, change("DELETED", found, AT_9))
    owner = admitted(AT_5)["metadata"]
    handles = [f"pod/{found['metadata']['uid']}", "pod/team-a/x"]
    assert set(map(repr, located(items))) == {repr((f"team-a/job-train/{owner['uid']}", "1", handles))}
    assert [name for name, _ in told(events(items))].count("workload.started") == 1


def test_pods_are_of_the_admission_after_which_they_were_bound(tmp_path: Path) -> None:
    early, unbound = (
        pod("x", 1, bound(AT_5), metadata=OWNED),
        pod("y", 1, {"phase": "Pending"}, metadata=OWNED),
    )
    assert located(read(tmp_path, admitted(AT_9), early, unbound)) == []
    assert located(read(tmp_path, early, admitted(AT_5))) == []


class _Kueue:
    """A Workload that stands for every job, until it is gone."""

    def __init__(self) -> None:
        self.run: tuple[str, str] | None = ("team-a/job-train", "1")

    def is_standing(self, meta: Meta) -> bool:
        return True

    def holder(self, meta: Meta, bound_s: int) -> tuple[str, str] | None:
        return self.run

    def seated(self, meta: Meta, seat: Seat, *, is_over: bool) -> list[MADE]:
        return []


def test_a_pod_that_is_gone_is_forgotten_though_its_workload_went_before_it() -> None:
    """A collector runs for months: it remembers what there is."""
    kueue = _Kueue()
    pods = Pods("west", Teams(), lambda _: Device(), kueue, Shares(), Claims(Shares()))
    raw = msgspec.json.encode(pod("x", 1, bound(AT_5), metadata=OWNED))
    ((first, _),), _ = pods.facts(Seen("Pod", "ADDED", raw))
    assert isinstance(first.data, Located)
    kueue.run = None
    assert pods.facts(Seen("Pod", "DELETED", raw)) == ([], [])
    assert pods._told == {}


def test_a_submission_names_the_job_that_somebody_made(tmp_path: Path) -> None:
    owner = {"ownerReferences": [{"kind": "Job", "name": "llm-workers-0", "uid": "u", "controller": True}]}
    labelled = {**owner, "labels": {"jobset.sigs.k8s.io/jobset-name": "llm"}}
    (event,) = events(read(tmp_path, pod("x", 1, {"phase": "Pending"}, node=None, metadata=labelled)))
    assert isinstance(event.data, Submitted)
    assert event.data.labels == {
        "namespace": "team-a",
        "owner_kind": "Job",
        "job_kind": "JobSet",
        "job": "llm",
    }


def test_the_end_of_a_pod_is_told_though_its_node_is_gone_and_with_it_what_its_device_was(
    tmp_path: Path,
) -> None:
    """A part of a device's memory is a part of nothing once nobody knows the device; what it held was told."""
    asks = {"annotations": {"gpu-memory": "40780"}}
    found = pod("x", 0, bound(AT_5), metadata=asks)
    gone = change("DELETED", node("node-1"), AT_9)
    items = read(tmp_path, node("node-1"), found, gone, change("DELETED", found, AT_9))
    names = [name for name, _ in told(events(items))]
    assert names[-2:] == ["host.retired", "workload.ended"]


def test_pods_of_a_workload_on_two_models_are_of_the_part_of_their_pod_set(tmp_path: Path) -> None:
    whole = admitted(AT_5, **{"and": (("side", "a100"),)})
    pods = [
        pod(name, 1, bound(AT_9), metadata={**OWNED, "labels": {"kueue.x-k8s.io/podset": pod_set}})
        for name, pod_set in (("x", "main"), ("y", "side"), ("z", "unheard-of"))
    ]
    found = located(read(tmp_path, whole, *pods))
    assert [(run, handles[1]) for _, run, handles in found] == [
        ("1-h100", "pod/team-a/x"),
        ("1-a100", "pod/team-a/y"),
    ]


def test_a_queue_name_alone_does_not_make_it_a_pod_of_kueue(tmp_path: Path) -> None:
    labelled = pod("x", 1, bound(AT_5), metadata={"labels": {"kueue.x-k8s.io/queue-name": "q"}})
    assert len(events(read(tmp_path, labelled))) == 2


def test_a_device_that_is_a_part_is_booked_as_one(tmp_path: Path) -> None:
    shared = node("node-1", 32, {"nvidia.com/gpu.product": "A100-SHARED", "nvidia.com/gpu.replicas": "4"})
    start = events(read(tmp_path, shared, pod("x", 2, bound(AT_5))))[-1].data
    assert isinstance(start, Started)
    assert (start.gpus_milli, start.gpu_model) == (500, "A100")


def test_more_memory_than_the_device_has_is_the_whole_device(tmp_path: Path) -> None:
    asking = {"annotations": {"gpu-memory": "99999", "gpu-fraction-num-devices": "2"}}
    start = events(read(tmp_path, node("node-1"), pod("x", 0, bound(AT_5), metadata=asking)))[-1].data
    assert isinstance(start, Started)
    assert start.gpus_milli == 2000
    assert read(tmp_path, pod("x", 0, {"phase": "Pending"}, metadata=asking, node=None)) == []


def test_a_pod_that_was_bound_nobody_says_when_is_a_fault(tmp_path: Path) -> None:
    assert told(events(read(tmp_path, pod("x", 1, {"phase": "Running", "startTime": AT_5}))))[-1] == (
        "workload.started",
        BEGAN + 300,
    )
    (fault,) = read(tmp_path, pod("x", 1, {"phase": "Running"}))
    assert isinstance(fault, Fault)
    assert (fault.code, "PodScheduled" in fault.message) == ("missing-value", True)


def test_a_retry_which_knows_no_earlier_state_finds_the_same_fault(tmp_path: Path) -> None:
    late = pod("x", 1, {"phase": "Running", "conditions": []}, node="node-1")
    late["metadata"]["creationTimestamp"] = "5626-10-31T20:00:00Z"
    *_, fault = read(tmp_path, pod("x", 1, bound(AT_5)), late)
    assert isinstance(fault, Fault)
    assert fault.code == "missing-value"
    with pytest.raises(BadRecord) as caught:
        source("pods").retry(fault.raw, fault.context)
    assert caught.value.code == fault.code


def test_a_fault_of_a_pod_that_was_told_of_is_found_again_by_a_retry(tmp_path: Path) -> None:
    """Alone, the later state holds no GPU and would be passed over; mended, it tells the end and no second start."""
    later = pod("x", 0, {"phase": "Failed", "conditions": []}, metadata={"annotations": {"a": "b"}})
    *_, fault = read(tmp_path, pod("x", 1, bound(AT_5)), change("MODIFIED", later, AT_9))
    assert isinstance(fault, Fault)
    with pytest.raises(BadRecord) as caught:
        source("pods").retry(fault.raw, fault.context)
    assert caught.value.code == fault.code == "missing-value"
    mended = fault.raw.replace(b'"conditions": []', b'"startTime": "2026-10-31T20:05:00Z"')
    found = source("pods").retry(mended, fault.context)
    assert [event.name for event, _ in found.events] == ["workload.ended"]
