"""Traces of real clusters as demand: what was submitted then, with how long each job ran then.

Any source of workload facts will do: a published trace, a log in the Standard Workload Format, an export of one's own
scheduler. The facts are those that an import would book; of them, what a simulation needs is kept, some hundred bytes
a job. A job works for as long as all its runs held GPUs; how long it waited is what a world is to find out.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import msgspec

from gpuledger.events.envelope import Event
from gpuledger.events.host import Registered
from gpuledger.events.mapping import Kind
from gpuledger.events.workload import Ended, Preempted, Requeued, Started, Submitted
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.errors import Refused
from gpuledger.ledger.mapping import DEFAULT_MINIMUM_RUNTIME_S
from gpuledger.policy.placement import model_of
from gpuledger.simulator.jobs import Job
from gpuledger.simulator.scenario import HostSpec
from gpuledger.sources.protocol import Fault, ImportOptions
from gpuledger.sources.registry import source

_KINDS: tuple[Kind, ...] = get_args(Kind)
_DAY_S = 86_400


class Traced(msgspec.Struct, gc=False):
    """What is kept of a job.

    Args:
        told: Its submission.
        at_s: When that was.
        since_s: Since when it runs; None when it does not.
        ran_s: How long its runs held GPUs; None when it had none.
    """

    told: Submitted
    at_s: int
    since_s: int | None = None
    ran_s: int | None = None

    def job(self, minimum_runtime_s: int, spelt: Callable[[str | None], str | None]) -> Job:
        """Return it as a user asks for it."""
        told = self.told
        return Job(
            job=told.workload,
            account=told.account,
            user=told.user,
            kind=next((kind for kind in _KINDS if kind == told.kind), "train"),
            gpus_milli=told.gpus_milli,
            submitted_s=self.at_s,
            work_s=max(self.ran_s or 0, 1),
            minimum_runtime_s=minimum_runtime_s if told.minimum_runtime_s is None else told.minimum_runtime_s,
            time_limit_s=None if told.time_limit_s is None else max(told.time_limit_s, self.ran_s or 0, 1),
            priority=told.priority or 0,
            gpu_model=spelt(told.gpu_model),
            resumable=told.resumable is not False,
            labels=told.labels,
        )


@dataclass(slots=True)
class Trace:
    """A trace, read.

    Args:
        jobs: What was submitted and ran on GPUs, in order of submission.
        hosts: Hosts that it names.
        accounts: Accounts of its jobs, sorted.
        notes: What of it is no demand, and why.
    """

    jobs: list[Traced] = field(default_factory=list)
    hosts: list[HostSpec] = field(default_factory=list)
    accounts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def start_s(self) -> int:
        """The midnight before its first submission."""
        return self.jobs[0].at_s // _DAY_S * _DAY_S

    def days_from(self, start_s: int) -> int:
        """Return how many days there are from a midnight to its last submission, at least one."""
        return max((self.jobs[-1].at_s - start_s) // _DAY_S + 1, 1)


def read_trace(name: str, paths: Sequence[Path], options: ImportOptions) -> Trace:
    """Read a trace.

    Args:
        name: The source, as ``gpuledger import`` calls it.
        paths: Its files.
        options: As for an import.

    Raises:
        Refused: When the source is not known, a file is not what it reads, or no job of it ran on GPUs.
    """
    reading = _Reading()
    for path in paths:
        for record in source(name).read(path, options):
            if isinstance(record, Fault):
                reading.fault(record)
                continue
            for event, _ in record.events:
                reading.take(event)
    trace = reading.close()
    if not trace.jobs:
        said = f": {'; '.join(trace.notes)}" if trace.notes else ""
        raise Refused(
            f"{', '.join(map(str, paths))}: no job of it was submitted and ran on GPUs{said}",
            hint="name a trace that tells of each job when it was submitted and how long it ran",
        )
    return trace


class _Reading:
    """Keeps of the facts what a simulation needs."""

    def __init__(self) -> None:
        self._jobs: dict[str, Traced] = {}
        self._hosts: dict[str, HostSpec] = {}
        self._last_s = 0
        self._faults = 0
        self._first_fault = ""
        self._older: set[str] = set()

    def fault(self, fault: Fault) -> None:
        self._faults += 1
        self._first_fault = self._first_fault or fault.message

    def take(self, event: Event) -> None:
        """Take a fact in; those of one job come in the order in which they happened."""
        self._last_s = max(self._last_s, event.at_s)
        match event.data:
            case Submitted() as told:
                self._jobs.setdefault(told.workload, Traced(told, event.at_s))
            case Started(workload=workload):
                if (job := self._jobs.get(workload)) is None:
                    self._older.add(workload)
                else:
                    job.since_s = event.at_s
            case Ended(workload=workload) | Requeued(workload=workload) | Preempted(workload=workload):
                if (job := self._jobs.get(workload)) is not None:
                    _stop(job, event.at_s)
            case Registered(host=host, gpus=gpus, gpu_model=model):
                self._hosts[host] = HostSpec(host=host, gpus_milli=gpus * GPU_MILLI, gpu_model=model)
            case _:
                pass

    def close(self) -> Trace:
        """Return what was read."""
        cut = [job for job in self._jobs.values() if job.since_s is not None]
        for job in cut:
            _stop(job, self._last_s)
        told = list(self._jobs.values())
        asked = [job for job in told if job.told.gpus_milli]
        jobs = sorted((job for job in asked if job.ran_s is not None), key=lambda job: job.at_s)
        counts = (
            (self._faults, f"records that cannot be read, the first: {self._first_fault}"),
            (len(self._older), "jobs whose submission is not told"),
            (len(told) - len(asked), "jobs without GPUs"),
            (len(asked) - len(jobs), "jobs that never started: how long they would have run is not known"),
        )
        notes = [f"left out: {count} {what}" for count, what in counts if count]
        if cut:
            notes.append(f"cut: {len(cut)} jobs that had not ended; they run for as long as is known")
        return Trace(jobs, list(self._hosts.values()), sorted({job.told.account for job in jobs}), notes)


def _stop(job: Traced, at_s: int) -> None:
    if job.since_s is not None:
        job.ran_s = (job.ran_s or 0) + max(at_s - job.since_s, 0)
        job.since_s = None


class TraceDemand:
    """The demand of a trace: what was submitted then is submitted now, whatever becomes of it.

    Args:
        trace: The trace.
        start_s: What was submitted before is left out.
        minimum_runtime_s: Of jobs that declare none; by default that of the mapping's built-in rule.
        models: GPU models of the hosts; jobs insist on one in any case of letters.
    """

    def __init__(
        self,
        trace: Trace,
        start_s: int,
        minimum_runtime_s: int = DEFAULT_MINIMUM_RUNTIME_S,
        models: Iterable[str] = (),
    ) -> None:
        self._trace = trace
        self._start_s = start_s
        self._minimum_runtime_s = minimum_runtime_s
        self._spelt = model_of(models)

    def first(self) -> Iterator[Job]:
        """Return its jobs as they are needed; see ``Demand.first``."""
        return (
            traced.job(self._minimum_runtime_s, self._spelt)
            for traced in self._trace.jobs
            if traced.at_s >= self._start_s
        )

    def after(self, job: Job, at_s: int) -> Iterable[Job]:  # noqa: ARG002 - as Demand says
        """Return nothing: a trace does not react."""
        return ()
