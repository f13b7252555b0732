"""What the reason of a stop says: did the host fail, did the work fail, or did it end as somebody wanted? Pure.

Reasons are the sources' own words, compared as ``events.words`` says; what the journal keeps of a reason says the same
as all of it did. Which words are known, and why: docs/decisions/0016-incidents.md.
"""

from enum import StrEnum

from gpuledger.events.words import words_of

NODE_FAILURES = frozenset(
    (
        # Slurm: base states "terminated on node failure" and "terminated due to node boot failure"
        # (slurm.schedmd.com/job_state_codes.html).
        "nodefail",
        "bootfail",
        # Kubernetes: the pod's reason when its kubelet no longer answers, and when the kubelet turns it away because
        # the node goes down (k8s.io/kubernetes pkg/util/node, pkg/kubelet/nodeshutdown).
        "nodelost",
        "nodeshutdown",
        # Kueue: a workload evicted because its nodes failed for good (kueue.x-k8s.io, conditions of a Workload).
        "nodefailures",
    )
)
"""Words that say that a host failed: evidence of a fault by themselves."""

CANCELLATIONS = frozenset(
    (
        "cancelled",  # Slurm, also as "CANCELLED by 1001"; ClusterCockpit
        "canceled",
        "killed",  # Philly: by its user
        "deactivated",  # Kueue: spec.active was set to false
    )
)
"""Words that say that somebody took the work away."""

ORDINARY_ENDS = frozenset(
    (
        "completed",  # Slurm, ClusterCockpit
        "succeeded",  # Kubernetes, openb
        "success",
        "pass",  # Philly
        "timeout",  # Slurm: its own time limit
        "deadline",
        "deadlineexceeded",  # Kubernetes: the same
        "outofmemory",  # Slurm: its own memory limit
        "oomkilled",  # Kubernetes
        "preempted",  # Slurm, Kueue: for other work
        "preemptionbyscheduler",  # Kubernetes
        "revoked",  # Slurm: another cluster of the federation started it
    )
)
"""Words that say that the run got all that it had asked for, or went for a reason of its own or of policy."""


class Stop(StrEnum):
    """Why a run stopped, as far as it matters for what is given back."""

    NODE_FAILURE = "node-failure"
    """The host failed."""
    FAILURE = "failure"
    """It failed, or nobody knows: given back where a fault was noticed on its host."""
    CANCELLATION = "cancellation"
    """Somebody took it away: given back only as the sibling of a run that was lost."""
    ORDINARY = "ordinary"
    """Nothing was lost."""


def why(reason: str) -> Stop:
    """Return what a reason says; one that is not known says that the run failed.

    The first word counts; a word of a failed host counts wherever it stands (``REQUEUED,NODE_FAIL``).
    """
    words = words_of(reason)
    if not NODE_FAILURES.isdisjoint(words):
        return Stop.NODE_FAILURE
    first = words[0] if words else ""
    if first in ORDINARY_ENDS:
        return Stop.ORDINARY
    return Stop.CANCELLATION if first in CANCELLATIONS else Stop.FAILURE
