from pathlib import Path

import pytest
from tests.unit.sources.kubernetes.building import (
    Object,
    admission,
    assignment,
    bound,
    change,
    conditions,
    events,
    pod,
    pod_set,
    read,
    told,
    workload,
)

from gpuledger.events.workload import Located, Resized, Started, Submitted
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.protocol import Fault, Translated
from gpuledger.sources.registry import source

BEGAN = 1_793_476_800  # 2026-10-31T20:00:00Z
AT_5, AT_6, AT_9 = "2026-10-31T20:05:00Z", "2026-10-31T20:06:00Z", "2026-10-31T20:09:00Z"


def at(minutes: int, seconds: int = 0) -> str:
    return f"2026-10-31T{20 + minutes // 60:02}:{minutes % 60:02}:{seconds:02}Z"


def state(*, given: Object | None, **types: tuple[str, str, str]) -> Object:
    return {"conditions": conditions(**types)} | ({} if given is None else {"admission": given})


def job(status: Object | None, **more: object) -> Object:
    return workload("train", [pod_set("main", 1, 8)], status, **more)  # type: ignore[arg-type]


def owned(kind: str, name: str, uid: str) -> Object:
    return {"ownerReferences": [{"kind": kind, "name": name, "uid": uid, "controller": True}]}


def admitted(kind: str, name: str, uid: str, *, gpus: int = 8, pods: int = 2, **more: object) -> Object:
    """A Workload of a job that was admitted at 20:05."""
    given = admission(assignment("main", pods, gpus, "h100"))
    return workload(
        name,
        [pod_set("main", pods, gpus // pods)],
        state(given=given, Admitted=("True", "Admitted", AT_5)) | more,
        metadata=owned(kind, name, uid),
    )


def placed(items: list[Translated | Fault]) -> list[tuple[int, list[str], dict[str, int] | None]]:
    """Return since when the run was told to be on which hosts."""
    found = {event.id: event for event in events(items) if isinstance(event.data, Resized)}
    return [
        (event.at_s - BEGAN, event.data.hosts, event.data.host_gpus_milli)
        for event in found.values()
        if isinstance(event.data, Resized)
    ]


def test_a_submission_says_what_mapping_rules_read(tmp_path: Path) -> None:
    (event,) = events(read(tmp_path, job(state(given=None), maximumExecutionTimeSeconds=7200, priority=5)))
    data = event.data
    assert isinstance(data, Submitted)
    assert (data.account, data.user, data.gpus_milli) == ("kubernetes/team-a", "-", 8000)
    assert (data.time_limit_s, data.priority) == (7200, 5)
    assert data.labels == {
        "namespace": "team-a",
        "queue": "training",
        "owner_kind": "Job",
        "job_kind": "Job",
        "job": "train",
    }
    assert (event.source, event.at_s) == ("kueue/kubernetes", BEGAN)
    assert data.workload == f"team-a/job-train/{data.workload.rpartition('/')[2]}"


def test_a_workload_without_gpus_is_passed_over(tmp_path: Path) -> None:
    assert read(tmp_path, workload("cpu", [pod_set("main", 4, 0)], state(given=None))) == []


def test_a_fault_of_a_workload_that_is_followed_is_found_again_by_a_retry(tmp_path: Path) -> None:
    """Alone, the later state asks for no GPU and would be passed over."""
    later = job(state(given=None, Finished=("True", "Succeeded", "")))
    del later["status"]["conditions"][0]["lastTransitionTime"]
    later["spec"]["podSets"] = []
    *_, fault = read(tmp_path, admitted("Job", "train", "job-train"), later)
    assert isinstance(fault, Fault)
    with pytest.raises(BadRecord) as caught:
        source("kueue").retry(fault.raw, fault.context)
    assert (fault.code, caught.value.code) == ("missing-value", "missing-value")
    assert "Finished" in fault.message
    assert "Finished" in caught.value.message


JOBSET = {"jobset.sigs.k8s.io/jobset-name": "llm", "jobset.sigs.k8s.io/jobset-uid": "uid-llm"}
TRAINED = {"training.kubeflow.org/job-name": "llm", "training.kubeflow.org/job-role": "launcher"}
RAY = {
    "ray.io/cluster": "llm-x7",
    "ray.io/originated-from-cr-name": "llm",
    "ray.io/originated-from-crd": "RayJob",
}


@pytest.mark.parametrize(
    ("kind", "uid", "pod_owner", "labels"),
    [
        ("JobSet", "uid-llm", ("Job", "llm-workers-0", "uid-1"), JOBSET),
        ("TrainJob", "uid-trainjob", ("Job", "llm-node-0", "uid-1"), JOBSET),
        ("PyTorchJob", "uid-llm", ("PyTorchJob", "llm", "uid-llm"), {}),
        ("MPIJob", "uid-llm", ("Job", "llm-launcher", "uid-1"), TRAINED),
        ("RayJob", "uid-llm", ("RayCluster", "llm-x7", "uid-1"), RAY),
        ("AppWrapper", "uid-llm", ("PyTorchJob", "t", "uid-1"), {"workload.codeflare.dev/appwrapper": "llm"}),
    ],
)
def test_pods_of_a_job_are_of_its_workload_however_many_controllers_stand_between(
    tmp_path: Path, kind: str, uid: str, pod_owner: tuple[str, str, str], labels: dict[str, str]
) -> None:
    """Their GPUs are in the admission, and hosts call the run by them; none of Kueue's own labels is needed."""
    found = pod("llm-0", 4, bound(AT_6), metadata={**owned(*pod_owner), "labels": labels})
    items = read(tmp_path, admitted(kind, "llm", uid), found, change("DELETED", found, AT_9))
    starts = [event.data for event in events(items) if isinstance(event.data, Started)]
    assert [(start.run, start.gpus_milli) for start in starts] == [("1", 8000)]
    (handles,) = {tuple(event.data.handles) for event in events(items) if isinstance(event.data, Located)}
    assert handles[1] == "pod/team-a/llm-0"


def test_a_pod_whose_last_state_comes_after_its_workload_is_gone_is_charged_to_nobody_again(
    tmp_path: Path,
) -> None:
    whole = admitted("JobSet", "llm", "uid-llm")
    found = pod(
        "llm-0", 4, bound(AT_6), metadata={**owned("Job", "llm-workers-0", "uid-1"), "labels": JOBSET}
    )
    items = read(tmp_path, whole, change("DELETED", whole, AT_9), change("DELETED", found, AT_9))
    assert [name for name, _ in told(events(items))].count("workload.started") == 1


def test_a_name_that_is_given_again_without_kueue_is_another_job(tmp_path: Path) -> None:
    whole = admitted("RayCluster", "llm", "uid-llm")
    later = {**owned("RayCluster", "llm", "uid-2"), "labels": {"ray.io/cluster": "llm"}}
    found = pod("late-0", 4, bound(at(12)), metadata={**later, "creationTimestamp": at(11)})
    items = read(tmp_path, whole, change("DELETED", whole, AT_9), found)
    starts = [event.data for event in events(items) if isinstance(event.data, Started)]
    assert [start.gpus_milli for start in starts] == [8000, 4000]


def test_where_a_run_is_follows_from_its_pods_once_all_are_bound(tmp_path: Path) -> None:
    """3 pods of 2 GPUs, two on one host: uneven; the amounts stay what they were."""
    whole = admitted("Job", "llm", "uid-llm", gpus=6, pods=3)
    pods = [
        pod(f"llm-{number}", 2, bound(at(6, number)), node=host, metadata=owned("Job", "llm", "uid-llm"))
        for number, host in enumerate(("n1", "n1", "n2"))
    ]
    assert placed(read(tmp_path, whole, *pods[:2])) == []
    items = read(tmp_path, whole, *pods, *pods)
    assert placed(items) == [(362, ["n1", "n2"], {"n1": 4000, "n2": 2000})]
    assert {e.data.gpus_milli for e in events(items) if isinstance(e.data, Resized)} == {6000}


def test_a_pod_that_is_made_anew_elsewhere_moves_its_part_of_the_run(tmp_path: Path) -> None:
    whole = admitted("Job", "llm", "uid-llm", gpus=4, pods=2)
    owner = owned("Job", "llm", "uid-llm")
    first, second = (
        pod(f"llm-{number}", 2, bound(AT_6), node=f"n{number}", metadata=owner) for number in (0, 1)
    )
    third = pod("llm-2", 2, bound(at(8)), node="n2", metadata=owner)
    items = read(tmp_path, whole, first, second, change("DELETED", first, at(7)), third)
    assert placed(items) == [(360, ["n0", "n1"], None), (480, ["n1", "n2"], None)]


def test_pods_that_end_leave_the_run_where_the_others_are(tmp_path: Path) -> None:
    """One of two pods is through, and Kueue gives its GPUs back: the rest is on the other's host."""
    owner = owned("Job", "llm", "uid-llm")
    whole = admitted("Job", "llm", "uid-llm", gpus=4, pods=2)
    less = admitted("Job", "llm", "uid-llm", gpus=4, pods=2, reclaimablePods=[{"name": "main", "count": 1}])
    first, second = (
        pod(f"llm-{number}", 2, bound(AT_6), node=f"n{number}", metadata=owner) for number in (0, 1)
    )
    through = pod("llm-0", 2, bound(AT_6, "Succeeded"), node="n0", metadata=owner)
    items = read(tmp_path, whole, first, second, change("MODIFIED", less, at(8)), through, second)
    assert placed(items) == [(360, ["n0", "n1"], None), (480, [], None), (480, ["n1"], None)]


def test_a_topology_says_where_a_run_is_and_pods_add_nothing(tmp_path: Path) -> None:
    levels = {
        "levels": ["kubernetes.io/hostname"],
        "slices": [
            {"domainCount": 2, "valuesPerLevel": [{"prefix": "n", "roots": ["1", "2"]}], "podCounts": [3, 1]}
        ],
    }
    given = admission(assignment("main", 4, 8, "h100", topologyAssignment=levels))
    whole = workload("llm", [pod_set("main", 4, 2)], state(given=given, Admitted=("True", "Admitted", AT_5)))
    owner = owned("Job", "llm", "job-llm")
    pods = [pod(f"llm-{k}", 2, bound(AT_6), node="n1", metadata=owner) for k in range(4)]
    items = read(tmp_path, whole, *pods)
    (start,) = [event.data for event in events(items) if isinstance(event.data, Started)]
    assert (start.hosts, start.host_gpus_milli) == (["n1", "n2"], {"n1": 6000, "n2": 2000})
    assert placed(items) == []
