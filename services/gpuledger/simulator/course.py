"""How a run goes when nobody disturbs it, and what comes of its work when somebody does."""

from dataclasses import dataclass
from typing import NamedTuple

from gpuledger.simulator.facts import Departure
from gpuledger.simulator.jobs import Job


class Outcome(NamedTuple):
    """What the time of a run went into; the four parts are all of it.

    Args:
        kept_s: Work that is not lost.
        lost_s: Work that has to be done again.
        loading_s: Loading.
        idle_s: What came after the work was done.
    """

    kept_s: int
    lost_s: int
    loading_s: int
    idle_s: int


@dataclass(frozen=True, slots=True)
class Course:
    """How a run goes: it loads, works, and keeps its GPUs for a while.

    Args:
        started_s: When it gets its GPUs.
        loaded_s: When it has loaded.
        done_s: When its work is done.
        ends_s: When it gives its GPUs back.
        why: Why it does.
    """

    started_s: int
    loaded_s: int
    done_s: int
    ends_s: int
    why: Departure

    def is_done(self, at_s: int) -> bool:
        """Say whether all work is done at an instant."""
        return at_s >= self.done_s

    def outcome(self, at_s: int, checkpoint_s: int | None) -> Outcome:
        """Return what its time went into when it leaves at an instant.

        Args:
            at_s: Not before it started.
            checkpoint_s: It saves its work each time it has worked for so long; None never does.
        """
        loading_s = min(at_s, self.loaded_s) - self.started_s
        if at_s >= self.done_s:
            return Outcome(self.done_s - self.loaded_s, 0, loading_s, at_s - self.done_s)
        worked_s = max(at_s - self.loaded_s, 0)
        kept_s = worked_s - worked_s % checkpoint_s if checkpoint_s else 0
        return Outcome(kept_s, worked_s - kept_s, loading_s, 0)


def course(job: Job, at_s: int, remaining_s: int) -> Course:
    """Return how a run goes that starts now.

    Args:
        job: What it works for.
        at_s: Now.
        remaining_s: What is left of the work.
    """
    loaded_s = at_s + job.startup_s
    done_s = loaded_s + remaining_s
    ends_s, why = done_s + job.idle_s, Departure.DONE
    if job.time_limit_s is not None and at_s + job.time_limit_s < ends_s:
        ends_s, why = at_s + job.time_limit_s, Departure.TIME_LIMIT
    return Course(at_s, loaded_s, done_s, ends_s, why)
