"""Pods: one run each, from when the scheduler bound the pod to a node until it is terminal or gone.

A pod that pulls its image, restarts after a crash or is being terminated still holds its devices. A pod of a Kueue
Workload books nothing: the Workload's own states carry its GPUs, and the pod is what hosts call the run. Devices of its
claims are another matter: a Workload does not count them, so its pod is booked with these. A pod by which KAI reserves
a device that others share is passed over: those who share it are booked with their part.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from gpuledger.events.workload import Ended, Located, Resized, Started, Submitted
from gpuledger.kernel import handles
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.jobs import NO_USER, RUN, Teams
from gpuledger.sources.kubernetes.claims import NOTHING, Claimed, Claims, claims_of, unknown_claims
from gpuledger.sources.kubernetes.endings import TERMINAL, End, end_of
from gpuledger.sources.kubernetes.naming import MADE, Named, Told, group_workload, identity, namespace
from gpuledger.sources.kubernetes.nodes import Device
from gpuledger.sources.kubernetes.objects import Meta, Pod, PodStatus
from gpuledger.sources.kubernetes.owners import job_of, labels_of
from gpuledger.sources.kubernetes.quantities import asked_milli, fraction_milli, whole, whole_mib
from gpuledger.sources.kubernetes.reading import (
    Seen,
    at_s,
    condition,
    created_s,
    decode,
    missing,
    since_s,
)
from gpuledger.sources.kubernetes.seats import Seat
from gpuledger.sources.kubernetes.sharing import Change, Sharer, Shares, Taken
from gpuledger.sources.values import Odd, name

QUEUE, GROUP = "kai.scheduler/queue", "pod-group-name"
"""KAI: the label of a pod's queue, and the annotation that names its PodGroup."""

_FRACTION, _MEMORY, _DEVICES = "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"
_RESERVATION = "kai-resource-reservation"
_KUEUE = (
    "kueue.x-k8s.io/workload",
    "kueue.x-k8s.io/podset",
    "kueue.x-k8s.io/managed",
    "kueue.x-k8s.io/pod-group-name",
    "kueue.x-k8s.io/prebuilt-workload-name",
    "kueue.x-k8s.io/tas",
)
_PRODUCT = "nvidia.com/gpu.product"
STARTED = "started"


@dataclass(frozen=True, slots=True)
class _Held:
    """What a pod holds once it is bound."""

    gpus_milli: int
    model: str | None
    plain_milli: int = 0
    claimed: Claimed = NOTHING


class Kueue(Protocol):
    """What is known of the Workloads whose pods these may be."""

    def is_standing(self, meta: Meta) -> bool:
        """Say whether a Workload stands for the job of a pod."""
        ...

    def holder(self, meta: Meta, bound_s: int) -> tuple[str, str] | None:
        """Return the workload and the run that a pod is of, as far as known."""
        ...

    def seated(self, meta: Meta, seat: Seat, *, is_over: bool) -> list[MADE]:
        """Note where a pod is; return what follows for its run."""
        ...


class Pods:
    """Reads Pods.

    Args:
        cluster: The cluster.
        teams: Accounts of queues and namespaces.
        device: Node -> what a device of it is, as far as the node was seen.
        kueue: The Workloads that stand for pods.
        shares: Who holds which ResourceClaims.
        claims: What they were given.
    """

    def __init__(
        self,
        cluster: str,
        teams: Teams,
        device: Callable[[str], Device],
        kueue: Kueue,
        shares: Shares,
        claims: Claims,
    ) -> None:
        self._cluster, self._teams, self._device = cluster, teams, device
        self._kueue, self._shares, self._claims = kueue, shares, claims
        self._source = f"kubernetes/{cluster}"
        self._told: dict[str, Told] = {}

    def follows(self, pod: str) -> bool:
        """Say whether a pod was told to have started: its later states are told, whatever they ask for."""
        told = self._told.get(pod)
        return told is not None and STARTED in told.known

    def follow(self, pod: str) -> None:
        """Take a pod for one that was told to have started: a retry knows no earlier state."""
        told = self._told[pod] = Told(self._source, pod)
        told.known.update(("submitted", STARTED, "located"))

    def known_claims(self, raw: bytes) -> list[str]:
        """Return the names of the claims of a pod of which it is known what they were given."""
        with suppress(BadRecord):
            pod = decode(Pod, raw)
            return [one for one in claims_of(pod) if self._claims.is_given(pod.metadata.namespace, one)]
        return []

    def unheard_claims(self, raw: bytes) -> list[tuple[str, str]]:
        """Return namespace and name of the claims of a bound pod of which it was not heard what they were given."""
        with suppress(BadRecord):
            pod = decode(Pod, raw)
            space = pod.metadata.namespace
            if pod.spec.node_name and not self.follows(f"{space}/{pod.metadata.name}/{pod.metadata.uid}"):
                return [(space, one) for one in claims_of(pod) if not self._claims.is_given(space, one)]
        return []

    def facts(self, seen: Seen) -> tuple[list[MADE], list[Odd]]:
        """Return what follows from a state of a Pod.

        Raises:
            BadRecord: When it cannot be understood.
        """
        pod = decode(Pod, seen.raw)
        meta = pod.metadata
        if _is_reservation(meta):
            return [], []
        is_of_workload = self._is_of_workload(meta)
        if is_of_workload and not pod.spec.resource_claims:
            return self._located(pod, seen), []
        own = f"{meta.namespace}/{meta.name}/{meta.uid}"
        if self.follows(own):  # what it holds is told, whatever is known of it now
            return self._translate(pod, _Held(0, None), seen)
        held = self._held(pod, own, is_of_workload=is_of_workload)
        if held.gpus_milli or held.claimed.given:
            return self._translate(pod, held, seen)
        return (self._located(pod, seen), _odd_claims(held.claimed)) if is_of_workload else ([], [])

    def _held(self, pod: Pod, own: str, *, is_of_workload: bool) -> _Held:
        """Return what a pod holds once it is bound; of one of a Workload its claims alone.

        Raises:
            BadRecord: When that cannot be read, or hangs on claims of which nothing is known.
        """
        device = self._device(pod.spec.node_name or "")
        plain = 0 if is_of_workload else _held_milli(pod, device)
        claimed = self._claims.of(pod, own) if pod.spec.resource_claims else NOTHING
        if claimed.unknown and pod.spec.node_name and not (plain or is_of_workload):
            raise unknown_claims(claimed.unknown)
        return _Held(plain + claimed.gpus_milli, device.model or claimed.model, plain, claimed)

    def _is_of_workload(self, meta: Meta) -> bool:
        if any(meta.label(key) or meta.annotation(key) for key in _KUEUE):
            return True
        return self._kueue.is_standing(meta)

    def _located(self, pod: Pod, seen: Seen) -> list[MADE]:
        """Return which run hosts mean by a pod of a Kueue Workload, once both are known, and on which hosts that is."""
        meta, is_gone = pod.metadata, seen.is_gone
        try:
            own, since_s = identity(meta), _bound_since(pod)
        except BadRecord:  # it books nothing, and hosts have no such name for it
            return []
        told = self._told.setdefault(own, Told(self._source, own))
        if is_gone:  # its workload may be gone by then
            del self._told[own]
        held = None if since_s is None else self._kueue.holder(meta, since_s)
        if since_s is None or held is None:
            return []
        spread: list[MADE] = []
        with suppress(BadRecord):  # then it is not known where the run is
            device = self._device(pod.spec.node_name or "")
            seat = Seat(pod.spec.node_name or "", _held_milli(pod, device), since_s)
            is_over = is_gone or (pod.status is not None and pod.status.phase in TERMINAL)
            spread = self._kueue.seated(meta, seat, is_over=is_over)
        workload, run = held
        names = [handles.pod_uid(meta.uid), handles.pod_name(meta.namespace, meta.name)]
        located = Located(cluster=self._cluster, workload=workload, run=run, handles=names)
        told.tell(f"located/{run}", since_s, located)
        return told.take() + spread

    def _translate(self, pod: Pod, held: _Held, seen: Seen) -> tuple[list[MADE], list[Odd]]:
        own, group = identity(pod.metadata), pod.metadata.annotation(GROUP)
        workload = group_workload(pod.metadata, group) if group else own
        named: Named = {"cluster": self._cluster, "workload": workload}
        told = self._told.get(own)
        if told is None:
            told = self._told[own] = Told(self._source, own)
        account, oddities = self._account(pod.metadata, group)
        # What is wrong with the state itself is found first: a retry, which knows no earlier state, finds it too.
        started_s, run = _bound_s(pod), pod.metadata.uid if group else RUN
        ended = end_of(pod, seen)
        if not group and account is not None and not told.known:
            self._submit(told, pod, named, account, held.gpus_milli)
        ended_s = ended.at_s if isinstance(ended, End) else None
        if started_s is not None and STARTED not in told.known:
            hosts = [name("spec.nodeName", pod.spec.node_name)] if pod.spec.node_name else []
            sharer = Sharer(own, workload, run, hosts, started_s, held.plain_milli)
            oddities += self._start(told, pod, held, sharer, ended_s, account if group else None)
        if isinstance(ended, End):
            self._stop(told, named, None if started_s is None else run, ended, is_group=bool(group))
            if started_s is not None and ended.at_s < started_s:
                oddities.append(("end-before-start", "the pod ended before it was bound; 0 is booked"))
        elif ended is not None:
            oddities.append(ended)
        others = [] if ended is None else self._handed_over(self._shares.leave(own, ended_s))
        if seen.is_gone:
            self._told.pop(own, None)
        return told.take() + others, oddities

    def _start(
        self, told: Told, pod: Pod, held: _Held, sharer: Sharer, ended_s: int | None, account: str | None
    ) -> list[Odd]:
        """Tell of a start, and of what the pod holds since, as far as it shares claims; return what is odd."""
        named: Named = {"cluster": self._cluster, "workload": sharer.workload}
        first, *later = self._shares.join(sharer, held.claimed.given, ended_s)
        started = Started(
            **named,
            run=sharer.run,
            attempt=1,
            gpus_milli=first.gpus_milli,
            gpu_model=held.model or (pod.spec.node_selector or {}).get(_PRODUCT),
            gpu_uuids=held.claimed.uuids,
            hosts=sharer.hosts,
            account=account,
        )
        told.tell(STARTED, first.at_s, started)
        if sharer.run != RUN:  # of a group
            names = [handles.pod_name(pod.metadata.namespace, pod.metadata.name)]
            told.tell("located", first.at_s, Located(**named, run=sharer.run, handles=names))
        for change in later:
            told.tell(*self._resized(sharer, change))
        most = held.plain_milli + sum(claim.gpus_milli for claim in held.claimed.given)
        return _odd_claims(held.claimed, is_shared=first.gpus_milli < most)

    def _handed_over(self, taken: Iterable[Taken]) -> list[MADE]:
        """Return what follows for the pods that hold a claim since another pod is over."""
        made: list[MADE] = []
        for heir, change in taken:
            told = self._told.setdefault(heir.own, Told(self._source, heir.own))
            made += told.alone(*self._resized(heir, change))
        return made

    def _resized(self, sharer: Sharer, change: Change) -> tuple[str, int, Resized]:
        resized = Resized(
            cluster=self._cluster,
            workload=sharer.workload,
            run=sharer.run,
            gpus_milli=change.gpus_milli,
            hosts=sharer.hosts,
        )
        return f"resized/{change.at_s}/{change.gpus_milli}", change.at_s, resized

    def _account(self, meta: Meta, group: str | None) -> tuple[str | None, list[Odd]]:
        """Return the account of a pod: that of its queue, else of its namespace; of a group only its queue's."""
        queue = meta.label(QUEUE)
        if queue is not None:
            return self._teams.account(QUEUE, self._cluster, queue)
        if group:
            return None, [("no-queue", f"metadata.labels: no {QUEUE}; the account is that of the PodGroup")]
        return self._teams.account("metadata.namespace", self._cluster, namespace(meta))

    def _submit(self, told: Told, pod: Pod, named: Named, account: str, gpus_milli: int) -> None:
        labels = {"namespace": pod.metadata.namespace}
        owner = next((own for own in pod.metadata.owner_references or () if own.controller), None)
        for key, value in (
            ("queue", pod.metadata.label(QUEUE)),
            ("owner_kind", owner.kind if owner else None),
            ("scheduler", pod.spec.scheduler_name),
            ("priority_class", pod.spec.priority_class_name),
        ):
            if value:
                labels[key] = name(key, value)
        labels |= labels_of(job_of(pod.metadata))
        submitted = Submitted(
            **named,
            account=account,
            user=NO_USER,
            gpus_milli=gpus_milli,
            time_limit_s=pod.spec.active_deadline_seconds,
            priority=pod.spec.priority,
            labels=labels,
        )
        told.tell("submitted", created_s(pod.metadata), submitted)

    def _stop(self, told: Told, named: Named, run: str | None, ended: End, *, is_group: bool) -> None:
        if run is None and is_group:
            return  # the group goes on without a pod that was never bound
        stop = Ended(**named, run=run, reason=ended.reason, exit=ended.exit, estimated=ended.estimated)
        told.tell("ended", ended.at_s, stop)


def _odd_claims(claimed: Claimed, *, is_shared: bool = False) -> list[Odd]:
    """Return what is odd about the claims of a pod that is booked."""
    odd: list[Odd] = []
    if is_shared:
        odd.append(
            ("shared-claim", "another pod holds a claim of this one, which holds it when that is over")
        )
    if claimed.unknown:
        odd.append(
            ("unknown-claim", f"{', '.join(claimed.unknown)}: what it was given is not known, nor booked")
        )
    return odd


def _is_reservation(meta: Meta) -> bool:
    return meta.namespace == _RESERVATION or meta.label("app") == _RESERVATION


def _bound_since(pod: Pod) -> int | None:
    """Return when a pod was bound to a node, as far as it says so."""
    with suppress(BadRecord):
        return _bound_s(pod)
    return None


def _held_milli(pod: Pod, device: Device) -> int:
    """Return the GPUs that a pod holds once it is bound, in milli-GPU.

    Raises:
        BadRecord: When an amount cannot be read, or a part of the memory of an unknown device is asked for.
    """
    meta = pod.metadata
    devices = whole(_DEVICES, meta.annotation(_DEVICES) or 1)
    if (fraction := meta.annotation(_FRACTION)) is not None:
        return fraction_milli(_FRACTION, fraction) * devices
    if (memory := meta.annotation(_MEMORY)) is not None:
        asked_mib = whole_mib(_MEMORY, memory)
        if not pod.spec.node_name:
            return 0  # what part it is follows from the device that it gets
        if not device.memory_mib:
            raise BadRecord(
                f"{_MEMORY}: {asked_mib} MiB of a device of unknown size",
                code="unknown-share",
                hint="put the Nodes into the stream before the Pods; their label nvidia.com/gpu.memory says it",
            )
        return min(asked_mib * GPU_MILLI // device.memory_mib, GPU_MILLI) * devices
    return asked_milli(pod.spec, device.milli)


def _bound_s(pod: Pod) -> int | None:
    """Return when the pod was bound to a node; None when it was not.

    Raises:
        BadRecord: When it was, and nothing says when.
    """
    status = pod.status or PodStatus()
    scheduled = condition(status.conditions, "PodScheduled")
    if scheduled is not None and scheduled.status == "True":
        return since_s(scheduled, "PodScheduled")
    if not pod.spec.node_name or pod.status is None:
        return None
    started_s = at_s(status.start_time)
    if started_s is None:
        raise missing("status.conditions[PodScheduled]")
    return started_s
