"""Kueue Workloads: one run from each admission until its GPUs are given back, and which pods are of it."""

from gpuledger.events.workload import Resized, Submitted
from gpuledger.sources.jobs import NO_USER, Teams
from gpuledger.sources.kubernetes.admissions import asked
from gpuledger.sources.kubernetes.naming import MADE, Named, Told, identity, namespace
from gpuledger.sources.kubernetes.objects import Meta, Workload
from gpuledger.sources.kubernetes.owners import Job, labels_of
from gpuledger.sources.kubernetes.reading import Seen, at_s, created_s, decode, written_s
from gpuledger.sources.kubernetes.seats import Layout, Seat
from gpuledger.sources.kubernetes.standing import Standing
from gpuledger.sources.kubernetes.unfolding import Course, Run, Unfolding
from gpuledger.sources.values import Odd, name

POD_SET, NAMED = "kueue.x-k8s.io/podset", ("kueue.x-k8s.io/workload", "kueue.x-k8s.io/prebuilt-workload-name")
"""The label of a pod that names its pod set, and the labels or annotations that name its Workload."""


class Workloads:
    """Reads Workloads, states of the same one in order.

    Args:
        cluster: The cluster.
        teams: Accounts of namespaces.
        followed: The workload that earlier states were told of, on a retry that does not know them.
    """

    def __init__(self, cluster: str, teams: Teams, followed: str | None = None) -> None:
        self._cluster, self._teams, self._followed = cluster, teams, followed
        self._source = f"kueue/{cluster}"
        self._courses: dict[str, Course] = {}
        self.standing = Standing()
        """The jobs whose pods book nothing, because a Workload stands for them."""
        self._named: dict[tuple[str, str], str] = {}

    def follows(self, workload: str) -> bool:
        """Say whether a workload was told of: its later states are, whatever they ask for."""
        course = self._courses.get(workload)
        return course is not None and bool(course.told.known)

    def is_standing(self, meta: Meta) -> bool:
        """Say whether a Workload stands, or stood, for the job of a pod."""
        return self.standing.workload(meta) is not None

    def holder(self, meta: Meta, bound_s: int) -> tuple[str, str] | None:
        """Return the workload and the run that a pod is of, by who owns it; None when they are not known.

        Args:
            meta: The pod's.
            bound_s: When it was bound to a node: one of an earlier admission was before the admission that there is.
        """
        found = self._run_of(meta, bound_s)
        return None if found is None else (found[0], f"{found[1].name}{found[2]}")

    def seated(self, meta: Meta, seat: Seat, *, is_over: bool) -> list[MADE]:
        """Note where a pod is, or that it is over; return on which hosts its run is, once all its pods are known.

        Args:
            meta: The pod's.
            seat: Where it is.
            is_over: Whether it holds nothing any more.
        """
        found = self._run_of(meta, seat.since_s)
        if found is None:
            return []
        workload, run, part = found
        seats = run.seats.get(part)
        if seats is None:
            return []
        if is_over:
            seats.leave(meta.uid)
        else:
            seats.take(meta.uid, seat)
        course, held = self._courses[workload], run.placements[part].gpus_milli
        layout = seats.layout(held, run.changed_s)
        if layout is None:
            return []
        named: Named = {"cluster": self._cluster, "workload": workload}
        return course.told.alone(
            f"{run.name}{part}/hosts/{layout.since_s}", layout.since_s, _spread(named, run, part, layout)
        )

    def _run_of(self, meta: Meta, bound_s: int) -> tuple[str, Run, str] | None:
        """Return the workload, the run and the part of it that a pod is of, as far as known."""
        known = [
            self._named.get((meta.namespace, meta.label(key) or meta.annotation(key) or "")) for key in NAMED
        ]
        workload = next((found for found in known if found), None) or self.standing.workload(meta)
        course = None if workload is None else self._courses.get(workload)
        if workload is None or course is None or course.run is None or bound_s < course.run.admitted_s:
            return None
        run = course.run
        part = "" if "" in run.placements else run.pod_sets.get(meta.label(POD_SET) or "")
        return None if part is None or part not in run.placements else (workload, run, part)

    def facts(self, seen: Seen) -> tuple[list[MADE], list[Odd]]:
        """Return what follows from a state of a Workload.

        Raises:
            BadRecord: When it cannot be understood.
        """
        found = decode(Workload, seen.raw)
        workload = identity(found.metadata)
        self.standing.stand(workload, found.metadata)
        if seen.is_gone:
            gone_s = at_s(found.metadata.deletion_timestamp) or seen.observed_s
            self.standing.leave(workload, gone_s or written_s(found.metadata) or 0)
        course = self._courses.get(workload)
        is_followed = workload == self._followed
        if course is None:
            if not is_followed and not asked(found):
                return [], []
            course = self._courses[workload] = Course(Told(self._source, workload))
            self._named[found.metadata.namespace, found.metadata.name] = workload
        course.odd = []
        if not course.told.known and not is_followed:
            submitted_s = created_s(found.metadata)
            submitted, course.odd = self._submitted(found, workload)
            course.told.tell("submitted", submitted_s, submitted)
        Unfolding(self._cluster, workload, course, found, seen).run()
        if seen.is_gone:
            del self._courses[workload]
            self._named.pop((found.metadata.namespace, found.metadata.name), None)
        return course.told.take(), course.odd

    def _submitted(self, found: Workload, workload: str) -> tuple[Submitted, list[Odd]]:
        account, clashes = self._teams.account("metadata.namespace", self._cluster, namespace(found.metadata))
        labels = {"namespace": found.metadata.namespace}
        if found.spec.queue_name:
            labels["queue"] = name("spec.queueName", found.spec.queue_name)
        owner = next((own for own in found.metadata.owner_references or () if own.controller), None)
        if owner is not None and owner.kind:
            labels["owner_kind"] = name("metadata.ownerReferences.kind", owner.kind)
        labels |= labels_of(None if owner is None else Job(owner.kind, owner.name))
        submitted = Submitted(
            cluster=self._cluster,
            workload=workload,
            account=account,
            user=NO_USER,
            gpus_milli=asked(found),
            time_limit_s=found.spec.maximum_execution_time_seconds,
            priority=found.spec.priority,
            labels=labels,
        )
        return submitted, clashes


def _spread(named: Named, run: Run, part: str, layout: Layout) -> Resized:
    """Return that a run is on certain hosts: its size is what it was."""
    return Resized(
        **named,
        run=f"{run.name}{part}",
        gpus_milli=run.placements[part].gpus_milli,
        hosts=layout.hosts,
        host_gpus_milli=layout.host_gpus_milli,
    )
