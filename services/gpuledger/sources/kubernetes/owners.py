"""Who submitted a pod: the job that a person made, however many controllers stand between it and its pods.

A pod names its nearest owner alone. What is above that follows from the labels that the controllers put on it: the pods
of a JobSet are owned by its Jobs, those of a RayJob by its RayCluster, and no list of these needs to be read.
"""

from collections.abc import Iterator
from typing import NamedTuple

from gpuledger.sources.kubernetes.objects import Meta, Owner
from gpuledger.sources.values import name

JOBSET_UID = "jobset.sigs.k8s.io/jobset-uid"

_JOBSET, _APP_WRAPPER = "jobset.sigs.k8s.io/jobset-name", "workload.codeflare.dev/appwrapper"
_LEADERS = "leaderworkerset.sigs.k8s.io/name"
_TRAINING, _OPERATOR = "training.kubeflow.org/job-name", "training.kubeflow.org/operator-name"
_RAY_ORIGIN, _RAY_KIND, _RAY = (
    "ray.io/originated-from-cr-name",
    "ray.io/originated-from-crd",
    "ray.io/cluster",
)

_OPERATORS = {
    "jaxjob-controller": "JAXJob",
    "mpi-operator": "MPIJob",
    "mpijob-controller": "MPIJob",
    "paddlejob-controller": "PaddleJob",
    "pytorchjob-controller": "PyTorchJob",
    "tfjob-controller": "TFJob",
    "xgboostjob-controller": "XGBoostJob",
}

_LIKE_JOBSET, _LIKE_TRAINING = "JobSet", "training"
_FAMILIES = {
    "AppWrapper": "AppWrapper",
    "JobSet": _LIKE_JOBSET,
    "LeaderWorkerSet": "LeaderWorkerSet",
    "RayCluster": "RayCluster",
    "RayJob": "RayJob",
    "RayService": "RayService",
    "TrainJob": _LIKE_JOBSET,
    **dict.fromkeys(_OPERATORS.values(), _LIKE_TRAINING),
}
"""Kind -> kinds whose pods are labelled alike: a TrainJob makes a JobSet of its own name."""


class Job(NamedTuple):
    """What somebody submitted.

    Args:
        kind: Its kind.
        name: Its name in its namespace.
    """

    kind: str
    name: str


def job_of(meta: Meta) -> Job | None:
    """Return the job that a pod is of, the uppermost that is known; None for a pod of its own."""
    return next(_labelled(meta), None) or next(
        (Job(own.kind, own.name) for own in meta.owner_references or () if own.controller), None
    )


def labels_of(job: Job | None) -> dict[str, str]:
    """Return what a submission says of the job, for mapping rules and reports.

    Raises:
        BadRecord: When its kind or name cannot be a label.
    """
    if job is None or not (job.kind and job.name):
        return {}
    return {"job_kind": name("metadata.ownerReferences.kind", job.kind), "job": name("job", job.name)}


def keys_of_pod(meta: Meta) -> Iterator[str]:
    """Yield by what the job of a pod may be known: uids first, which nothing else has, then names."""
    yield meta.uid
    for own in meta.owner_references or ():
        yield own.uid
    if (uid := meta.label(JOBSET_UID)) is not None:
        yield uid
    for job in _labelled(meta):
        yield named(meta.namespace, _FAMILIES.get(job.kind, job.kind), job.name)


def keys_of_owner(meta: Meta, owner: Owner) -> Iterator[str]:
    """Yield by what the pods of an owner may know it.

    Args:
        meta: Of the object that it owns.
        owner: Who that is.
    """
    if owner.uid:
        yield owner.uid
    if owner.name and owner.kind in _FAMILIES:
        yield named(meta.namespace, _FAMILIES[owner.kind], owner.name)


def named(namespace: str, family: str, job: str) -> str:
    """Return the key of a job by its name: no uid has a slash in it."""
    return f"{namespace}/{family}/{job}"


def is_named(key: str) -> bool:
    """Say whether a key is a name, which another job may bear later."""
    return "/" in key


def _labelled(meta: Meta) -> Iterator[Job]:
    for key, kind in ((_APP_WRAPPER, "AppWrapper"), (_JOBSET, "JobSet"), (_LEADERS, "LeaderWorkerSet")):
        if (found := meta.label(key)) is not None:
            yield Job(kind, found)
    if (found := meta.label(_TRAINING)) is not None:
        yield Job(_OPERATORS.get(meta.label(_OPERATOR) or "") or _nearest(meta), found)
    if (found := meta.label(_RAY_ORIGIN)) is not None:
        yield Job(meta.label(_RAY_KIND) or "RayJob", found)
    if (found := meta.label(_RAY)) is not None:
        yield Job("RayCluster", found)


def _nearest(meta: Meta) -> str:
    """Return the kind of job of the training operator that owns a pod; a launcher is owned by a Job of its own."""
    kinds = [own.kind for own in meta.owner_references or () if _FAMILIES.get(own.kind) == _LIKE_TRAINING]
    return kinds[0] if kinds else "MPIJob"
