import pytest

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.kubernetes.objects import Meta, Owner
from gpuledger.sources.kubernetes.owners import Job, is_named, job_of, keys_of_owner, keys_of_pod, labels_of


@pytest.mark.parametrize(
    ("labels", "nearest", "job"),
    [
        ({"jobset.sigs.k8s.io/jobset-name": "llm"}, "Job", Job("JobSet", "llm")),
        ({"training.kubeflow.org/job-name": "llm"}, "PyTorchJob", Job("PyTorchJob", "llm")),
        (
            {"training.kubeflow.org/job-name": "llm", "training.kubeflow.org/operator-name": "mpi-operator"},
            "Job",
            Job("MPIJob", "llm"),
        ),
        ({"training.kubeflow.org/job-name": "llm"}, "Job", Job("MPIJob", "llm")),
        (
            {
                "ray.io/cluster": "llm-x7",
                "ray.io/originated-from-cr-name": "llm",
                "ray.io/originated-from-crd": "RayService",
            },
            "RayCluster",
            Job("RayService", "llm"),
        ),
        ({"ray.io/cluster": "llm-x7"}, "RayCluster", Job("RayCluster", "llm-x7")),
        ({"leaderworkerset.sigs.k8s.io/name": "serve"}, "StatefulSet", Job("LeaderWorkerSet", "serve")),
        ({"workload.codeflare.dev/appwrapper": "aw"}, "PyTorchJob", Job("AppWrapper", "aw")),
        ({}, "ReplicaSet", Job("ReplicaSet", "x")),
    ],
)
def test_the_job_is_the_uppermost_that_is_known(labels: dict[str, str], nearest: str, job: Job) -> None:
    meta = Meta(labels=labels, owner_references=[Owner(kind=nearest, name="x", uid="u", controller=True)])
    assert job_of(meta) == job


def test_a_pod_of_its_own_is_of_no_job() -> None:
    assert job_of(Meta(owner_references=[Owner(kind="Node", name="n", uid="u")])) is None
    assert labels_of(None) == {}
    assert labels_of(Job("", "x")) == {}


def test_a_job_that_cannot_be_a_label_is_refused() -> None:
    with pytest.raises(BadRecord, match="job: "):
        labels_of(Job("JobSet", "a\nb"))


def test_pods_and_owners_know_each_other_by_uid_first_then_by_name() -> None:
    pod = Meta(
        namespace="ns",
        uid="pod-uid",
        labels={"jobset.sigs.k8s.io/jobset-name": "llm", "jobset.sigs.k8s.io/jobset-uid": "set-uid"},
        owner_references=[Owner(kind="Job", name="llm-0", uid="job-uid", controller=True)],
    )
    keys = list(keys_of_pod(pod))
    assert keys == ["pod-uid", "job-uid", "set-uid", "ns/JobSet/llm"]
    assert [is_named(key) for key in keys] == [False, False, False, True]
    workload = Meta(namespace="ns")
    assert list(keys_of_owner(workload, Owner(kind="JobSet", name="llm", uid="set-uid"))) == [
        "set-uid",
        "ns/JobSet/llm",
    ]
    assert set(keys) & set(keys_of_owner(workload, Owner(kind="TrainJob", name="llm", uid="t")))
    assert list(keys_of_owner(workload, Owner(kind="Job", name="llm", uid="j"))) == ["j"]
    assert list(keys_of_owner(workload, Owner())) == []
