"""Which workload a run of a Slurm job belongs to.

Slurm gives the number of a job out again: to the next run of the same job when it is requeued, preempted, hit by a
failing host or resized, and years later to another job. Each run has a submit time of its own, in every format;
the runs of one job are linked by their times alone: the next is submitted when the one before has ended. SLUIDs,
where a version has them, say it outright.

A workload is named after the number and the first submit time that was seen of it. A run stays with the workload
that it was booked to first, whatever is learnt later and in whichever format: otherwise it would be charged twice.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from gpuledger.sources.protocol import KnownRuns

REQUEUE_S = 3600
"""A run that is submitted within an hour of the end of another run of its number is the next run of that job: a
requeue waits for the epilog, and numbers come round again after months."""

HELD_S = 30 * 86_400
"""A record that says itself that it is not the first of its job goes on from the one before it, however long the job
was held since; but a number that was used longer ago was used by another job."""

JOBS_LIMIT = 1 << 17
"""So many jobs of one pass are remembered; their records stand close together."""


class RunIdentity(NamedTuple):
    """What tells one run from another.

    Args:
        cluster: The cluster.
        job: Slurm's number of the job, with its array task or component, such as ``8841_7`` or ``8841+1``.
        submitted_s: When the run was submitted.
        ended_s: When it ended; None while it has not.
        restarts: How many runs the job had before, where the record says so.
        is_resized: Whether the run goes on from another of another size.
        lineage: The SLUID of the job's first run, where the record says so.
        first_s: When the job was submitted, where the record of a resized run says so beside; else as the run.
    """

    cluster: str
    job: str
    submitted_s: int
    ended_s: int | None = None
    restarts: int | None = None
    is_resized: bool = False
    lineage: str | None = None
    first_s: int | None = None


class _Run:
    __slots__ = ("ended_s", "lineage", "submitted_s", "workload")

    def __init__(self, workload: str, submitted_s: int, ended_s: int | None, lineage: str | None) -> None:
        self.workload, self.submitted_s, self.ended_s, self.lineage = workload, submitted_s, ended_s, lineage


class Workloads:
    """The workloads of one pass through records.

    Args:
        known: The runs that are booked already; None when there is no ledger.
    """

    def __init__(self, known: KnownRuns | None = None) -> None:
        self._known = known
        self._runs: dict[tuple[str, str], list[_Run]] = {}

    def look_up(self, wanted: Mapping[str, Collection[str]]) -> None:
        """Ask the ledger for the runs of jobs by cluster, before ``workload_of`` is asked for them one by one."""
        if self._known is None:
            return
        for cluster, jobs in wanted.items():
            fresh = {job for job in jobs if (cluster, job) not in self._runs}
            found = self._known.of(cluster, fresh) if fresh else {}
            for job in fresh:
                self._remember((cluster, job), [_Run(*known, lineage=None) for known in found.get(job, ())])

    def workload_of(self, run: RunIdentity) -> str:
        """Return the workload of a run, and remember the run."""
        key = run.cluster, run.job
        runs = self._runs.get(key)
        if runs is None:
            self.look_up({run.cluster: (run.job,)})
            runs = self._runs.get(key)
            if runs is None:
                runs = self._remember(key, [])
        same = next((other for other in runs if other.submitted_s == run.submitted_s), None)
        if same is not None:
            same.ended_s = run.ended_s if same.ended_s is None else same.ended_s
            same.lineage = same.lineage or run.lineage
            return same.workload
        linked = _linked(run, runs) if runs else None
        workload = linked.workload if linked else f"{run.job}-{run.first_s or run.submitted_s}"
        runs.append(_Run(workload, run.submitted_s, run.ended_s, run.lineage))
        return workload

    def _remember(self, key: tuple[str, str], runs: list[_Run]) -> list[_Run]:
        if len(self._runs) >= JOBS_LIMIT:
            del self._runs[next(iter(self._runs))]
        self._runs[key] = runs
        return runs


def _linked(run: RunIdentity, runs: list[_Run]) -> _Run | None:
    """Return the run before or after this one in the life of one job, if there is one."""
    for other in runs:
        if other.submitted_s == run.first_s or (run.lineage is not None and other.lineage == run.lineage):
            return other
    before = max((r for r in runs if r.submitted_s < run.submitted_s), key=_submitted_s, default=None)
    if before is not None and _follows(run, before):
        return before
    after = min((r for r in runs if r.submitted_s > run.submitted_s), key=_submitted_s, default=None)
    if after is not None and run.ended_s is not None and -1 <= after.submitted_s - run.ended_s <= REQUEUE_S:
        return after
    return None


def _follows(run: RunIdentity, before: _Run) -> bool:
    ended_s = before.ended_s
    if run.is_resized or run.restarts:
        return run.submitted_s - (before.submitted_s if ended_s is None else ended_s) <= HELD_S
    if run.restarts == 0 or ended_s is None:
        return False
    return -1 <= run.submitted_s - ended_s <= REQUEUE_S


def _submitted_s(run: _Run) -> int:
    return run.submitted_s
