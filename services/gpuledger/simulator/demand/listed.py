"""Jobs that somebody wrote down, and several demands at once."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from gpuledger.simulator.jobs import Demand, Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """A job, once or again and again.

    Args:
        job: The first; the others have other ids and times.
        count: How many.
        every_s: From each submission to the next.
    """

    job: Job
    count: int = 1
    every_s: int = 0

    def jobs(self) -> Iterator[Job]:
        """Yield them in order of submission."""
        for number in range(self.count):
            yield replace(
                self.job,
                job=f"{self.job.job}-{number + 1}",
                submitted_s=self.job.submitted_s + number * self.every_s,
            )


class Listed:
    """The demand of jobs that are submitted whatever happens."""

    def __init__(self, jobs: Sequence[Repeated]) -> None:
        self._jobs = jobs

    def first(self) -> Iterator[Job]:
        """Return them; see ``Demand.first``."""
        return heapq.merge(*(repeated.jobs() for repeated in self._jobs), key=_when)

    def after(self, job: Job, at_s: int) -> Iterable[Job]:  # noqa: ARG002 - as Demand says
        """Return nothing: nobody asks again."""
        return ()


class Given:
    """The demand of jobs that are submitted whatever happens, one by one.

    Args:
        jobs: The jobs, in order of submission.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._jobs = jobs

    def first(self) -> Sequence[Job]:
        """Return them; see ``Demand.first``."""
        return self._jobs

    def after(self, job: Job, at_s: int) -> Iterable[Job]:  # noqa: ARG002 - as Demand says
        """Return nothing: nobody asks again."""
        return ()


class Together:
    """Several demands at once; each reacts to its own jobs, by their ids."""

    def __init__(self, demands: Sequence[Demand]) -> None:
        self._demands = demands

    def first(self) -> Iterator[Job]:
        """Return what all of them submit; see ``Demand.first``."""
        return heapq.merge(*(demand.first() for demand in self._demands), key=_when)

    def after(self, job: Job, at_s: int) -> Iterable[Job]:
        """Return what whose job it was asks for next; see ``Demand.after``."""
        return [following for demand in self._demands for following in demand.after(job, at_s)]


def _when(job: Job) -> tuple[int, str]:
    return job.submitted_s, job.job
