"""What samplers call a run: they see a job number or a pod, and the ledger's name follows from it."""

from gpuledger.sources.jobs import RUN


def slurm_run(job: str) -> str:
    """Return ``workload/run`` of a Slurm job that a sampler knows by its number."""
    return f"{job}/{RUN}"


def pod_uid_run(uid: str) -> str:
    """Return ``workload/run`` of a pod that a sampler knows by its UID."""
    return f"{uid}/{RUN}"


def pod_run(namespace: str, pod: str) -> str:
    """Return ``workload/run`` of a pod that a sampler knows by its name."""
    return f"{namespace}/{pod}/{RUN}"
