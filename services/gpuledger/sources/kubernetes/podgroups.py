"""KAI PodGroups: the workload that the pods of a group are runs of, and the queue that pays.

A PodGroup says what is asked for, not since when its pods hold anything: their own states do.
"""

from gpuledger.events.workload import Ended, Submitted
from gpuledger.sources.jobs import NO_USER, Teams
from gpuledger.sources.kubernetes.naming import MADE, Named, Told, group_workload, namespace
from gpuledger.sources.kubernetes.objects import GroupStatus, PodGroup
from gpuledger.sources.kubernetes.quantities import GPU, milli
from gpuledger.sources.kubernetes.reading import Seen, at_s, created_s, decode
from gpuledger.sources.values import Odd, name

DELETION = "deleted"

_KEYS = (GPU, "gpu")


class PodGroups:
    """Reads PodGroups.

    Args:
        cluster: The cluster.
        teams: Accounts of queues.
        followed: The uid of the group that earlier states were told of, on a retry that does not know them.
    """

    def __init__(self, cluster: str, teams: Teams, followed: str | None = None) -> None:
        self._cluster, self._teams, self._followed = cluster, teams, followed
        self._source = f"kai/{cluster}"
        self._told: dict[str, Told] = {}

    def follows(self, uid: str) -> bool:
        """Say whether a group was told of: its later states are, whatever they ask for."""
        told = self._told.get(uid)
        return told is not None and bool(told.known)

    def facts(self, seen: Seen) -> tuple[list[MADE], list[Odd]]:
        """Return what follows from a state of a PodGroup; nothing while it is not known to ask for GPUs.

        Raises:
            BadRecord: When it cannot be understood.
        """
        group = decode(PodGroup, seen.raw)
        gpus_milli = _requested(group.status or GroupStatus())
        meta = group.metadata
        workload = group_workload(meta, meta.name)
        told = self._told.get(meta.uid)
        is_followed = meta.uid == self._followed
        if told is None:
            if not is_followed and not gpus_milli:
                return [], []
            told = self._told[name("metadata.uid", meta.uid)] = Told(self._source, f"{workload}/{meta.uid}")
        named: Named = {"cluster": self._cluster, "workload": workload}
        account, oddities = self._teams.account(
            "spec.queue", self._cluster, group.spec.queue or namespace(meta)
        )
        if not told.known and not is_followed:
            told.tell("submitted", created_s(meta), self._submitted(group, named, account, gpus_milli))
        if seen.is_gone:
            ended_s = at_s(meta.deletion_timestamp) or seen.observed_s
            if ended_s is None:
                oddities.append(("deleted-at-unknown-time", "metadata.deletionTimestamp: is missing"))
            else:
                told.tell("ended", ended_s, Ended(**named, reason=DELETION, estimated=seen.is_guess))
            del self._told[meta.uid]
        return told.take(), oddities

    def _submitted(self, group: PodGroup, named: Named, account: str, gpus_milli: int) -> Submitted:
        labels = {"namespace": group.metadata.namespace}
        for key, value in (
            ("queue", group.spec.queue),
            ("priority_class", group.spec.priority_class_name),
            ("preemptibility", group.spec.preemptibility),
        ):
            if value:
                labels[key] = name(key, value)
        return Submitted(**named, account=account, user=NO_USER, gpus_milli=gpus_milli, labels=labels)


def _requested(status: GroupStatus) -> int:
    """Return the GPUs that the pods of the group ask for together; KAI writes parts of a GPU as decimals."""
    requested = status.resources_status.requested if status.resources_status else None
    for key in _KEYS:
        if key in (requested or {}):
            return milli(f"status.resourcesStatus.requested[{key}]", (requested or {})[key])
    return 0
