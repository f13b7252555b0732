"""What the formats share that show jobs as they are now: why a job waits, how many tasks of an array may start.

A picture of the queue is no history. It knows the last run of a job only, it shows expectations as times, and it
shows the tasks of an array that wait as one record; what makes facts of it must not take any of them for more.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from msgspec.structs import replace

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.lines import Broken, Line
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.slurm.job import SlurmJob
from gpuledger.sources.slurm.reading import EMPTY, JobReader, waiting_tasks
from gpuledger.sources.slurm.states import PENDING, RUNNING, SUSPENDED, Kind
from gpuledger.sources.slurm.times import read_time
from gpuledger.sources.values import Odd

_NOT_ELIGIBLE = frozenset(
    (
        "AccountNotAllowed",
        "BadConstraints",
        "DeadLine",
        "Dependency",
        "DependencyNeverSatisfied",
        "InvalidAccount",
        "InvalidQOS",
        "JobHeldAdmin",
        "JobHeldUser",
        "JobHoldMaxRequeue",
        "JobLaunchFailure",
        "PartitionConfig",
        "PartitionNodeLimit",
        "PartitionTimeLimit",
        "ReservationDeleted",
        "job_requeued_in_held_state",
        "launch_failed_requeued_held",
    )
)
"""Why a job waits that would not start if every GPU were free. Limits of an account or QOS are not among them: what
they hold back is demand all the same."""


class LiveReader(JobReader):
    """Understands the jobs of a picture of the queue.

    Args:
        options: What the person who imports says, and what the ledger knows.
        context: What a fault of an earlier pass remembered, on a retry.
    """

    throttled: ClassVar[re.Pattern[bytes]]
    """Finds a record of tasks that wait with a limit to how many of their array run at once."""

    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options, context)
        self._running: defaultdict[tuple[str, str], set[str]] = defaultdict(set)

    def count_tasks(self, pieces: Iterable[Line | Broken]) -> None:
        """Count the tasks of each array that run, where a limit makes it matter; to be called before reading."""
        records = [piece.raw for piece in pieces if isinstance(piece, Line)]
        if not any(map(self.throttled.search, records)):
            return
        for raw in records:
            try:
                jobs = self.parse(raw)
            except BadRecord:
                continue  # it is reported when it is read
            for job in jobs:
                array, _, task = job.job.partition("_")
                if task and job.state.kind in (RUNNING, SUSPENDED):
                    self._running[job.cluster, array].add(task)

    def waiting(self, job: SlurmJob, array: str, tasks: str) -> Sequence[SlurmJob]:
        """Return the tasks of an array that wait and may start; the first of them, blocked, if none may.

        Args:
            job: What the one record of all waiting tasks says.
            array: The number of the array.
            tasks: Their expression, such as ``2-9%4``.

        Raises:
            BadRecord: When the expression cannot be read.
        """
        may_start = waiting_tasks(job, array, tasks, len(self._running[job.cluster, array]))
        if may_start:
            return may_start
        return [replace(first, is_eligible=False) for first in waiting_tasks(job, array, tasks)[:1]]


def is_eligible(kind: Kind, reason: str) -> bool:
    """Say whether a job would start if enough GPUs were free; one that does not wait was."""
    return kind is not PENDING or reason.replace(" ", "_") not in _NOT_ELIGIBLE


def start_of(kind: Kind, started_s: int | None, hosts: Sequence[str]) -> int | None:
    """Return when a run started.

    A job that is over and never had a host did not: the controller sets the start of what was cancelled while it
    waited to that moment.
    """
    never = not hosts and kind not in (RUNNING, SUSPENDED, PENDING)
    return None if never else started_s


class TextReader(LiveReader):
    """Understands the jobs of a picture of the queue in text, whose times are local to whoever asked."""

    def instant(self, field: str, value: str, oddities: list[Odd]) -> int | None:
        """Return a local time in seconds since the epoch; None for what stands for none.

        Args:
            field: The name of the field, for messages.
            value: The time.
            oddities: Gets what is odd about it.

        Raises:
            BadRecord: When it is no time.
        """
        if not value:
            return None
        known_s = self.times.known(value)
        if known_s is not None:
            return known_s
        at_s, odd = read_time(self.times, field, "" if value in NO_TIME else value)
        if odd is not None:
            oddities.append(odd)
        return at_s


NO_TIME = frozenset((*EMPTY, "NONE"))
