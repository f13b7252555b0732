"""One state of a Kueue Workload after another: which runs follow from them.

The conditions of a Workload are a map of newest values, not a log: which admissions there were follows only from
the states one after another. ``accumulatedPastExecutionTimeSeconds`` is how long the earlier ones lasted together;
each run that ends is compared with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuledger.events.workload import Ended, Preempted, Ready, Requeued, Resized, Started, Stopped
from gpuledger.sources.kubernetes.admissions import Placement, asked, parts_of_sets, placements
from gpuledger.sources.kubernetes.naming import Named, Told
from gpuledger.sources.kubernetes.objects import Admission, Condition, Workload, WorkloadStatus
from gpuledger.sources.kubernetes.reading import (
    Seen,
    at_s,
    condition,
    created_s,
    missing,
    since_s,
    written_s,
)
from gpuledger.sources.kubernetes.seats import Seats
from gpuledger.sources.values import Odd, shown

TRUE, FALSE = "True", "False"
DELETION, DISPATCHED = "deleted", "dispatched"
UNSEEN = "unseen-eviction"
ACCUMULATED = "status.accumulatedPastExecutionTimeSeconds"
TOLERANCE_S = 1
"""The accumulated time is counted with fractions of a second, conditions without."""

_READY_REASONS = frozenset(("PodsReady", "Started"))


@dataclass(slots=True)
class Run:
    """From one admission until its GPUs are given back."""

    name: str
    attempt: int
    admitted_s: int
    accumulated_s: int
    """What earlier admissions had lasted when this one began."""
    placements: dict[str, Placement]
    """Part of the run -> what it holds; one part, unless there are several GPU models."""
    pod_sets: dict[str, str] = field(default_factory=dict)
    """Pod set -> the part that its pods are in."""
    seats: dict[str, Seats] = field(default_factory=dict)
    """Part of the run -> where its pods are; only of parts whose hosts the admission does not say."""
    changed_s: int = 0
    """When it last changed its size."""
    admission: Admission | None = None
    """What its placements follow from, which may change: a host that fails may be replaced."""


@dataclass(slots=True)
class Course:
    """What is known of a workload so far."""

    told: Told
    run: Run | None = None
    accumulated_s: int = 0
    evictions: int = 0
    is_elsewhere: bool = False
    """Whether its present admission is one to another cluster."""
    odd: list[Odd] = field(default_factory=list)


class Unfolding:
    """One state of a workload, and what it adds to its course."""

    def __init__(self, cluster: str, workload: str, course: Course, found: Workload, seen: Seen) -> None:
        self.named: Named = {"cluster": cluster, "workload": workload}
        self.course, self.found, self.seen = course, found, seen
        self.status = found.status or WorkloadStatus()
        self.admitted = condition(self.status.conditions, "Admitted")
        self.evicted = condition(self.status.conditions, "Evicted")
        self.finished = condition(self.status.conditions, "Finished")
        self.accumulated_s = self.status.accumulated_past_execution_time_seconds or 0
        stats = self.status.scheduling_stats
        self.evictions = None if stats is None else sum(e.count for e in stats.evictions or ())

    def run(self) -> None:
        """Tell what is new, and keep what the next state is compared with."""
        if self.admitted is not None and self.admitted.status == TRUE:
            if self.status.cluster_name and self.course.run is None:
                self._elsewhere(self.admitted, self.status.cluster_name)
            else:
                self._admission(self.admitted)
        elif self.admitted is not None and self.admitted.status == FALSE:
            if not self.course.is_elsewhere:
                self._no_admission(self.admitted)
            self.course.is_elsewhere = False
        if self.finished is not None and self.finished.status == TRUE:
            self._end(since_s(self.finished, "Finished"), self.finished.reason or "finished")
        elif self.seen.is_gone:
            self._deletion()
        self.course.accumulated_s = self.accumulated_s
        self.course.evictions = self.evictions or 0

    def _admission(self, admitted: Condition) -> None:
        admitted_s = since_s(admitted, "Admitted")
        admission = self.status.admission
        if admission is None:
            raise missing("status.admission")
        run = self.course.run
        if run is not None and run.admitted_s != admitted_s:
            self._missed_end(run, admitted_s)
            run = None
        elif run is None and self.accumulated_s > self.course.accumulated_s:
            self._history_missing(self.accumulated_s - self.course.accumulated_s)
        if run is None:
            named, attempt = self._number(admitted_s)
            given = placements(self.found.spec, admission)
            run = Run(named, attempt, admitted_s, self.accumulated_s, given, parts_of_sets(admission))
            run.seats = {part: Seats() for part, placement in given.items() if not placement.hosts}
            run.admission = admission
            self._start(run)
            if admitted_s < created_s(self.found.metadata):
                self._odd("start-before-submit", "Admitted: before metadata.creationTimestamp")
        if self.status.reclaimable_pods or run.admission != admission:
            run.admission = admission
            self._change(run, placements(self.found.spec, admission, self.status.reclaimable_pods or ()))
        self._ready(run)

    def _elsewhere(self, admitted: Condition, cluster: str) -> None:
        """Take note that MultiKueue gave it to another cluster: a Workload of its own holds its GPUs there."""
        if not self.course.is_elsewhere:
            self._odd(
                "runs-elsewhere", f"status.clusterName: its GPUs are those of {shown(cluster)}; collect there"
            )
        self.course.is_elsewhere = True
        self._end(since_s(admitted, "Admitted"), DISPATCHED)

    def _number(self, admitted_s: int) -> tuple[str, int]:
        """Return the name and attempt of the admission that the workload has now, from this state alone.

        Kueue of today counts evictions. Of an older one only the first admission is known as such; the others are
        named by their time.
        """
        is_leaving = self._is_leaving(admitted_s)
        if self.evictions is not None:
            ordinal = max(self.evictions + (not is_leaving), 1)
            return str(ordinal), ordinal
        if not self.accumulated_s and (self.evicted is None or is_leaving):
            return "1", 1
        requeued = self.status.requeue_state.count if self.status.requeue_state else None
        return f"at-{admitted_s}", max(2, (requeued or 0) + 1)

    def _is_leaving(self, admitted_s: int) -> bool:
        """Say whether the admission is being taken away; ``Evicted`` may still be true of an earlier one."""
        evicted = self.evicted
        return evicted is not None and evicted.status == TRUE and since_s(evicted, "Evicted") >= admitted_s

    def _start(self, run: Run) -> None:
        self.course.run = run
        for part, placement in run.placements.items():
            self._tell(
                f"{run.name}{part}/started",
                run.admitted_s,
                Started(
                    **self.named,
                    run=f"{run.name}{part}",
                    attempt=run.attempt,
                    gpus_milli=placement.gpus_milli,
                    gpu_model=placement.model,
                    hosts=placement.hosts,
                    host_gpus_milli=placement.host_gpus_milli,
                ),
            )

    def _change(self, run: Run, given: Mapping[str, Placement]) -> None:
        """Give back the GPUs of pods that are through, and move to other hosts, from when that was seen."""
        changed_s = self.seen.observed_s or written_s(self.found.metadata)
        for part, now in given.items():
            before = run.placements.get(part)
            if before is None or now.gpus_milli > before.gpus_milli:
                continue
            is_less = now.gpus_milli < before.gpus_milli
            if not is_less and (not now.hosts or now.hosts == before.hosts):
                continue
            if changed_s is None:
                if is_less:
                    self._odd(
                        "reclaimed-at-unknown-time", "status.reclaimablePods: booked as held until the end"
                    )
                else:
                    self._odd("changed-at-unknown-time", "status.admission: other hosts; not booked")
                return
            run.placements[part], run.changed_s = now, changed_s
            if part in run.seats:
                run.seats[part].forget()
            resized = Resized(
                **self.named,
                run=f"{run.name}{part}",
                gpus_milli=now.gpus_milli,
                hosts=now.hosts,
                host_gpus_milli=now.host_gpus_milli,
            )
            what = f"resized/{now.gpus_milli}" if is_less else f"moved/{changed_s}"
            self._tell(f"{run.name}{part}/{what}", changed_s, resized)

    def _ready(self, run: Run) -> None:
        ready = condition(self.status.conditions, "PodsReady")
        if ready is None or ready.status != TRUE or ready.reason not in _READY_REASONS:
            return
        ready_s = since_s(ready, "PodsReady")
        if ready_s >= run.admitted_s:
            for part in run.placements:
                self._tell(f"{run.name}{part}/ready", ready_s, Ready(**self.named, run=f"{run.name}{part}"))

    def _no_admission(self, admitted: Condition) -> None:
        """End the run that was open; of a run that nobody saw, tell what the accumulated time proves."""
        ended_s = since_s(admitted, "Admitted")
        run, more_s = self.course.run, self.accumulated_s - self.course.accumulated_s
        if run is not None:
            self._checked_stop(run, ended_s)
        elif more_s > 0:
            run = self._proven(ended_s, more_s)
            if run is None:
                self._history_missing(more_s)
                return
            self._odd("history-rebuilt", f"{ACCUMULATED}: one admission of {more_s} s that was not seen")
            self._start(run)
            self._stop(run, ended_s)

    def _checked_stop(self, run: Run, ended_s: int) -> None:
        """End a run, and compare how long it lasted with what Kueue counted.

        Less was counted when it was taken away and admitted again unseen: then it lasted as long as was counted. A
        count that is not there or began anew, as after a deactivation, says nothing; one that did not grow says that
        it did not last, where more evictions were counted than the run's own.
        """
        lasted_s = ended_s - run.admitted_s
        counted_s = self.status.accumulated_past_execution_time_seconds
        grown_s = (
            lasted_s if counted_s is None or counted_s < run.accumulated_s else counted_s - run.accumulated_s
        )
        if abs(grown_s - lasted_s) <= TOLERANCE_S:
            self._stop(run, ended_s)
            return
        self._differs(run, lasted_s)
        was_again = self.evictions is not None and self.evictions > run.attempt
        if grown_s < lasted_s and (grown_s > 0 or was_again):
            self._stop(run, run.admitted_s + grown_s, estimated=True)
        else:
            self._stop(run, ended_s)

    def _proven(self, ended_s: int, lasted_s: int) -> Run | None:
        """Return the one run that an accumulated time stands for, when there was exactly one and its size is known."""
        if self.evictions is None or self.evictions - self.course.evictions != 1:
            return None
        if any(pod_set.min_count is not None for pod_set in self.found.spec.pod_sets or ()):
            return None  # it may have been admitted with fewer pods
        began_s = ended_s - lasted_s
        if began_s < created_s(self.found.metadata):
            return None  # longer than there is the workload
        whole = {"": Placement(asked(self.found), None, [])}
        return Run(str(self.evictions), self.evictions, began_s, self.course.accumulated_s, whole)

    def _missed_end(self, run: Run, admitted_s: int) -> None:
        """End a run whose eviction nobody saw: it lasted as long as the accumulated time grew."""
        lasted_s = self.accumulated_s - run.accumulated_s
        ended_s = run.admitted_s + lasted_s
        if not run.admitted_s <= ended_s <= admitted_s:
            self._differs(run, admitted_s - run.admitted_s)
            ended_s = admitted_s
        self._odd(
            "history-rebuilt", f"Admitted: an eviction was not seen; run {run.name} ended by its length"
        )
        self._stop(run, ended_s, estimated=True)

    def _stop(self, run: Run, ended_s: int, *, estimated: bool | None = None) -> None:
        """Tell that the GPUs were given back: when the admission ended, not when the eviction was decided."""
        evicted = self.evicted if self.evicted is not None and self.evicted.status == TRUE else None
        reason = (evicted.reason if evicted is not None else "") or UNSEEN
        kind: type[Stopped] = Requeued
        if self.found.spec.active is False:
            kind = Ended
        elif reason == "Preempted":
            kind = Preempted
        self._close(run, ended_s, kind, reason, estimated=estimated)

    def _end(self, ended_s: int, reason: str, *, estimated: bool | None = None) -> None:
        run = self.course.run
        if run is not None:
            self._close(run, ended_s, Ended, reason, estimated=estimated)
        else:
            self._tell("ended", ended_s, Ended(**self.named, reason=reason, estimated=estimated))

    def _deletion(self) -> None:
        """End what a deleted workload held: when it was deleted, as far as anybody says."""
        meta = self.found.metadata
        ended_s = at_s(meta.deletion_timestamp) or self.seen.observed_s
        if ended_s is not None:
            self._end(ended_s, DELETION, estimated=self.seen.is_guess)
        else:
            self._odd("deleted-at-unknown-time", "metadata.deletionTimestamp: is missing; its run stays open")

    def _close(
        self, run: Run, ended_s: int, kind: type[Stopped], reason: str, *, estimated: bool | None = None
    ) -> None:
        if ended_s < run.admitted_s:
            self._odd("end-before-start", f"run {run.name} ended before it was admitted; 0 is booked")
        for part in run.placements:
            stop = kind(**self.named, run=f"{run.name}{part}", reason=reason, estimated=estimated)
            self._tell(f"{run.name}{part}/stopped", ended_s, stop)
        self.course.run = None

    def _tell(self, what: str, at: int, fact: Started | Resized | Ready | Stopped) -> None:
        self.course.told.tell(what, at, fact)

    def _differs(self, run: Run, lasted_s: int) -> None:
        grown_s = self.accumulated_s - run.accumulated_s
        self._odd(
            "accumulated-differs",
            f"{ACCUMULATED}: grew by {grown_s} s, but run {run.name} lasted {lasted_s} s",
        )

    def _history_missing(self, missing_s: int) -> None:
        self._odd(
            "history-missing",
            f"{ACCUMULATED}: {missing_s} s of earlier admissions were not seen, nor booked",
        )

    def _odd(self, code: str, message: str) -> None:
        self.course.odd.append((code, message))
