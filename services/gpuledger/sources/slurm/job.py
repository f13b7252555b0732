"""One run of a Slurm job, whatever the format it was told in -> facts.

The facts of one run are the same in every format, down to their ids: files that tell of the same runs can be
imported one after another, and polled again and again. A record of a run that goes on says less than that of the
same run when it has ended, and one that was edited afterwards says it better: the version of a fact tells how far
the record had come, and of contradictory facts the furthest counts.
"""

import datetime as dt
import hashlib
import re
from collections.abc import Iterator
from typing import TypedDict

import msgspec

from gpuledger.events.envelope import Event, data_json, make
from gpuledger.events.fields import END_OF_TIME_S
from gpuledger.events.workload import (
    Ended,
    Located,
    Preempted,
    Requeued,
    Resumed,
    Started,
    Stopped,
    Submitted,
    Suspended,
    WorkloadFact,
)
from gpuledger.kernel import handles
from gpuledger.kernel.clock import instant
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.jobs import NO_USER
from gpuledger.sources.slurm.states import (
    PENDING,
    PREEMPTED,
    REQUEUED,
    RESIZED,
    REVOKED,
    RUNNING,
    SUSPENDED,
    Kind,
    State,
)
from gpuledger.sources.slurm.tres import Gpus
from gpuledger.sources.slurm.workloads import RunIdentity
from gpuledger.sources.values import Odd

SCHEDULER = "slurm"
"""Begins the source of every fact; the cluster of records that name none."""

NOTHING = Gpus(0)

NEVER = instant(END_OF_TIME_S - 1)
"""When a job may start of which nobody can say when: it is no demand until a later record says better."""

_DIGEST_CHARACTERS = 12
_RAW = re.compile(r"[0-9]{1,20}")
_VERSIONS = {PENDING: 1, RUNNING: 2, SUSPENDED: 2}
_HELD_BACK, _OVER, _ALTERED = 0, 3, 4
_STOPS: dict[Kind, type[Stopped]] = {REQUEUED: Requeued, PREEMPTED: Preempted}

Facts = list[tuple[Event, bytes]]


class _Named(TypedDict):
    cluster: str
    workload: str
    run: str


class SlurmJob(msgspec.Struct, kw_only=True, gc=False):
    """What a record says of one run of a job. Times are seconds since the epoch, None where there is none (yet).

    Args:
        cluster: The cluster, as a part of an account path.
        job: Slurm's number as people see it: ``8841``, ``8841_7`` of an array, ``8841+1`` of a heterogeneous job.
            The raw number of an array task names no run: most formats do not tell it.
        state: Its state.
        submitted_s: When this run was submitted: a requeue sets it anew.
        eligible_s: When it could first start.
        started_s: When its GPUs were allocated; an expectation while it is pending.
        resized_s: When it got the size that is told, where a format says that beside the first start.
        ended_s: When it ended; an expectation while it is not over.
        elapsed_s: How long it ran, where a format says so; without ``suspended_s``.
        suspended_s: For how long it was suspended.
        suspended_at_s: When it was suspended, where a format says so and it still is.
        resumed_at_s: When it was resumed last, where a format says so.
        user: Who submitted it; None when nobody is named.
        account: Slurm's account; None when none is named.
        asked: GPUs asked for; None when the record names none.
        held: GPUs allocated; None when the record names none.
        untracked: What in the record asks for GPUs although no resource that is tracked names one.
        time_limit_s: The declared limit.
        hosts: Where it ran.
        host_gpus_milli: What it holds on each of them, where they do not all hold as much and a format tells.
        gpu_uuids: Its devices, where a format tells them.
        labels: What mapping rules may read: account, partition, qos, reservation.
        exit: Exit code and signal, such as ``0:15``.
        restarts: Runs of the job before this one, where the record says so.
        lineage: SLUID of the job's first run, where the record says so.
        is_altered: Whether the record was edited after the end.
        is_eligible: Whether a job that waits would start if enough GPUs were free.
        is_vague: Whether the format does not tell if the size was changed; of a fact that contradicts one of a better
            format the other counts.
        raw: The number that hosts know the job by, where the record tells it: an array task and a component have
            another than the one that people see.
        oddities: What is odd about the record besides what follows from the above.
    """

    cluster: str
    job: str
    state: State
    submitted_s: int
    eligible_s: int | None = None
    started_s: int | None = None
    resized_s: int | None = None
    ended_s: int | None = None
    elapsed_s: int | None = None
    suspended_s: int = 0
    suspended_at_s: int | None = None
    resumed_at_s: int | None = None
    user: str | None = None
    account: str | None = None
    asked: Gpus | None = None
    held: Gpus | None = None
    untracked: str | None = None
    time_limit_s: int | None = None
    hosts: tuple[str, ...] = ()
    host_gpus_milli: dict[str, int] | None = None
    gpu_uuids: list[str] | None = None
    labels: dict[str, str] | None = None
    exit: str | None = None
    restarts: int | None = None
    lineage: str | None = None
    is_altered: bool = False
    is_eligible: bool = True
    is_vague: bool = False
    raw: str | None = None
    oddities: tuple[Odd, ...] = ()

    @property
    def run_s(self) -> int:
        """The submit time that accounting has for this run: a change of size is a submission there."""
        return self.submitted_s if self.resized_s is None else max(self.submitted_s, self.resized_s)

    @property
    def held_from_s(self) -> int | None:
        """When it held its GPUs first in this size; None when it never did, or has not yet.

        A start before the submission is that of the first size: accounting repeats it in the record of the next.
        """
        kind, start_s = self.state.kind, self.started_s
        if start_s is None or kind is PENDING or kind is REVOKED:
            return None
        if self.state.name == "CANCELLED" and self.ended_s is not None:
            at_end = start_s == self.ended_s and self.held is None
            if at_end or start_s > self.ended_s:
                return None  # cancelled while it was pending; the start was an expectation, or is the end
        return max(start_s, self.run_s)

    @property
    def identity(self) -> RunIdentity:
        """What its workload is found by."""
        run_s = self.run_s
        return RunIdentity(
            cluster=self.cluster,
            job=self.job,
            submitted_s=run_s,
            ended_s=self.ended_s if self.state.is_over else None,
            restarts=self.restarts,
            is_resized=run_s > self.submitted_s or self.held_from_s not in (None, self.started_s),
            first_s=min(self.submitted_s, run_s),
            lineage=self.lineage,
        )


def facts_of(job: SlurmJob, workload: str, account: str) -> tuple[Facts, list[Odd]]:
    """Return the facts of a run, and what is odd about it.

    Args:
        job: The run.
        workload: The workload that it belongs to; named after another run than this one when it goes on from that.
        account: The account that pays.

    Raises:
        BadRecord: When start and end were clipped to the window of a report.
    """
    begin_s, is_over = job.held_from_s, job.state.is_over
    _check_times(job, begin_s)
    held = job.held or NOTHING
    asked = job.asked or held
    version = _version(job)
    run_s, cluster = job.run_s, job.cluster
    run = str(run_s)
    submitted = Submitted(
        cluster=cluster,
        workload=workload,
        account=account,
        user=NO_USER,
        gpus_milli=asked.milli,
        gpu_model=None if asked.model is None or "," in asked.model else asked.model,
        time_limit_s=job.time_limit_s,
        eligible_at=_eligible_at(job),
        labels=job.labels or None,
        version=version,
    )
    facts = [_fact(job, run, "submitted", run_s, submitted)]
    if begin_s is not None and not _is_untold(job):
        first = workload == f"{job.job}-{run}"
        started = Started(
            cluster=cluster,
            workload=workload,
            run=run,
            attempt=(job.restarts or 0) + 1,
            gpus_milli=held.milli,
            gpu_model=held.model,
            hosts=list(job.hosts),
            host_gpus_milli=job.host_gpus_milli,
            gpu_uuids=job.gpu_uuids,
            account=None if first else account,
            version=version,
        )
        facts.append(_fact(job, run, "started", begin_s, started))
        for what, at_s, fact in _besides(job, workload, run, begin_s):
            facts.append(_fact(job, run, what, at_s, fact))
    if is_over and job.ended_s is not None:
        for what, fact in _stops(job, workload, begin_s, version):
            facts.append(_fact(job, run, what, job.ended_s, fact))
    return facts, list(_oddities(job, begin_s))


def _besides(job: SlurmJob, workload: str, run: str, begin_s: int) -> Iterator[tuple[str, int, WorkloadFact]]:
    """Yield what else is told of a run that has begun, and when it was so."""
    named: _Named = {"cluster": job.cluster, "workload": workload, "run": run}
    if job.raw is not None and job.raw != job.job and _RAW.fullmatch(job.raw):
        yield "located", begin_s, Located(**named, handles=[handles.slurm_job(job.raw)])
    if job.suspended_at_s is not None:
        yield "suspended", job.suspended_at_s, Suspended(**named)
    if job.resumed_at_s is not None:
        yield "resumed", job.resumed_at_s, Resumed(**named)


def _version(job: SlurmJob) -> int:
    """Return how far a record had come: a job that is held back now may have been demand before it was."""
    if job.is_altered:
        return _ALTERED
    version = _VERSIONS.get(job.state.kind, _OVER) if job.is_eligible else _HELD_BACK
    return max(version - job.is_vague, _HELD_BACK)


def _eligible_at(job: SlurmJob) -> dt.datetime | None:
    """Return when it could first start: the end of time while something else than GPUs is in the way."""
    if job.eligible_s is not None and job.eligible_s > job.run_s:
        return instant(job.eligible_s)
    return None if job.is_eligible else NEVER


def _fact(job: SlurmJob, run: str, what: str, at_s: int, data: WorkloadFact) -> tuple[Event, bytes]:
    """Return a fact whose id says what, of which run, and a digest of the rest.

    The person is no part of the digest: the journal keeps ids in clear.
    """
    said = data_json(data)
    digest = hashlib.sha256(b"%d%b" % (at_s, said)).hexdigest()[:_DIGEST_CHARACTERS]
    if job.user is not None and isinstance(data, Submitted):
        data = msgspec.structs.replace(data, user=job.user)
        said = data_json(data)
    id_ = f"{job.job}/{run}/{what}/{digest}"
    return make(id=id_, source=f"{SCHEDULER}/{job.cluster}", at_s=at_s, data=data, said=said)


def _check_times(job: SlurmJob, begin_s: int | None) -> None:
    if begin_s is None or not job.state.is_over or job.ended_s is None or job.elapsed_s is None:
        return
    started_s = begin_s if job.started_s is None else job.started_s
    elapsed_s = job.elapsed_s + job.suspended_s
    if elapsed_s > max(0, job.ended_s - started_s) + 1:
        raise BadRecord(
            f"elapsed: {elapsed_s} s do not fit between start {started_s} and end {job.ended_s}: times are clipped",
            code="clipped-times",
            hint="ask sacct without -T (--truncate), and import the whole times",
        )


def _is_untold(job: SlurmJob) -> bool:
    """Say whether it held GPUs of which nobody counts how many: not none."""
    asked = job.asked is not None and job.asked.milli > 0
    return job.held is None and (asked or job.untracked is not None)


def _stops(job: SlurmJob, workload: str, begin_s: int | None, version: int) -> Iterator[tuple[str, Stopped]]:
    kind, name = job.state.kind, job.state.name
    if begin_s is None:
        if kind not in (REQUEUED, RESIZED):
            yield "over", Ended(cluster=job.cluster, workload=workload, reason=name, version=version)
        return
    is_estimate = _may_be_repaired(job)
    yield (
        "ended",
        _STOPS.get(kind, Ended)(
            cluster=job.cluster,
            workload=workload,
            run=str(job.run_s),
            reason=name,
            exit=job.exit,
            estimated=is_estimate or None,
            version=None if is_estimate else version,
        ),
    )
    if kind is PREEMPTED:  # a later submission says that it waits again
        yield "over", Ended(cluster=job.cluster, workload=workload, reason=name, version=version)


def _may_be_repaired(job: SlurmJob) -> bool:
    """Say whether the end is what ``sacctmgr show runawayjobs`` writes over an end that was lost."""
    newest = max(job.submitted_s, job.started_s or 0, job.eligible_s or 0)
    return job.state.name == "COMPLETED" and job.ended_s == newest


def _oddities(job: SlurmJob, begin_s: int | None) -> Iterator[Odd]:
    yield from job.oddities
    for gpus in (job.held, job.asked if begin_s is None else None):
        if gpus is not None:
            yield from gpus.oddities
    if begin_s is not None and _is_untold(job):
        told = job.untracked or "GPUs were asked for"
        yield (
            "gpus-not-tracked",
            f"{told}, but no GPU was counted (AccountingStorageTRES): how many were held is not known, not none",
        )
    if begin_s is None or not job.state.is_over:
        return
    if job.ended_s is None:
        yield (
            "end-lost",
            f"state: {job.state.name} without an end; the run stays open until something tells when it was over",
        )
    elif job.ended_s < begin_s:
        yield (
            "end-before-start",
            f"end: {job.ended_s} is before start {begin_s}; nothing is charged",
        )
    elif _may_be_repaired(job):
        yield (
            "zero-length",
            "COMPLETED at the second of its start: perhaps the repair of an end that was lost; marked as an estimate",
        )
    if job.suspended_s:
        yield (
            "suspended",
            f"suspended for {job.suspended_s} s at times that are not told; its GPUs stayed held and are charged",
        )
