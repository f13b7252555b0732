"""From a job that was placed several times to its facts: one run for each attempt."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from gpuledger.events.envelope import Event, make
from gpuledger.events.workload import Ended, Requeued, Started
from gpuledger.sources.jobs import Job
from gpuledger.sources.pieces import Facts
from gpuledger.sources.values import Odd

REQUEUED = "requeued"


class Attempt(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One placement of a job.

    Args:
        number: Its place among the attempts of the job, 1 for the first; also the id of its run.
        started_s: When it got its GPUs.
        ended_s: When it gave them back; None when nothing says so.
        gpus_milli: What it held.
        hosts: Where, as far as known.
        gpu_uuids: Which devices, where known.
        estimated: Whether the end is the last that is known of it, not the true end.
    """

    number: int
    started_s: int
    ended_s: int | None
    gpus_milli: int
    hosts: list[str]
    gpu_uuids: list[str] | None = None
    estimated: bool = False


class PlacedJob(NamedTuple):
    """A job and its placements, as a record tells of them.

    Args:
        job: The job, without start and end of its own.
        attempts: In the order of their starts.
        oddities: What is odd about the record.
        is_over: Whether the job ended with its last attempt.
    """

    job: Job
    attempts: Sequence[Attempt]
    oddities: Sequence[Odd]
    is_over: bool = True

    def facts(self) -> Facts:
        """Return what ``attempt_facts`` does, and what is odd."""
        return attempt_facts(self.job, self.attempts, is_over=self.is_over), self.oddities


def attempt_facts(
    job: Job, attempts: Sequence[Attempt], *, is_over: bool = True
) -> tuple[tuple[Event, bytes], ...]:
    """Return the job's submission, and start and end of each attempt; after all but the last it waited again.

    Args:
        job: The job, without start and end of its own; ``reason`` is that of the last end.
        attempts: In the order of their starts.
        is_over: Whether the job ended with its last attempt.
    """
    facts = job.facts()
    is_known = job.submitted_s is not None
    for place, attempt in enumerate(attempts, start=1):
        run = str(attempt.number)
        started = Started(
            cluster=job.cluster,
            workload=job.workload,
            run=run,
            attempt=attempt.number,
            gpus_milli=attempt.gpus_milli,
            hosts=attempt.hosts,
            gpu_uuids=attempt.gpu_uuids,
            account=None if is_known else job.account,
            user=None if is_known else job.user,
        )
        name = f"{job.workload}/{run}"
        facts.append(make(id=f"{name}/started", source=job.source, at_s=attempt.started_s, data=started))
        if attempt.ended_s is None:
            continue
        is_last = is_over and place == len(attempts)
        ended = (Ended if is_last else Requeued)(
            cluster=job.cluster,
            workload=job.workload,
            run=run,
            reason=job.reason if is_last else REQUEUED,
            estimated=attempt.estimated or None,
        )
        facts.append(make(id=f"{name}/ended", source=job.source, at_s=attempt.ended_s, data=ended))
    return tuple(facts)
