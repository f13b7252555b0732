"""What a host calls a run: it sees a job's number or a pod, and not the name that the ledger gave to the run.

A sampler tells the handle, the facts of a run say which handles it has, and which run a sample belongs to follows from
both and from the time (docs/decisions). The forms here are a published interface.
"""


def slurm_job(number: str) -> str:
    """Return the handle of a Slurm job by its number, as people see it: ``4711``, ``8841_7``, ``8841+1``."""
    return f"job/{number}"


def pod_uid(uid: str) -> str:
    """Return the handle of a pod by its UID."""
    return f"pod/{uid}"


def pod_name(namespace: str, pod: str) -> str:
    """Return the handle of a pod by its name."""
    return f"pod/{namespace}/{pod}"
