"""What happens in a simulation, as it is told: to worlds while it goes on, to measures and to a ledger afterwards.

Values only. Facts come in order of time; those of one instant in the order in which they happened.
"""

from dataclasses import dataclass
from enum import StrEnum

from gpuledger.policy.placement import Placement
from gpuledger.policy.state import WorkClass
from gpuledger.simulator.jobs import Job


class Departure(StrEnum):
    """Why a run gave its GPUs back."""

    DONE = "done"
    PREEMPTED = "preempted"
    HOST_FAILED = "host failed"
    TIME_LIMIT = "time limit"


class HostCondition(StrEnum):
    """What a host is good for."""

    HEALTHY = "healthy"
    DRAINING = "draining"
    """Healthy; it takes no new run, because somebody wants to repair it."""
    DOWN = "down"
    """Broken, or being repaired: nothing runs there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """A job was submitted."""

    at_s: int
    job: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """A user gave a waiting job up."""

    at_s: int
    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """GPUs were handed over.

    Args:
        at_s: When.
        job: To which job.
        run: 1 for its first run.
        placement: Where.
        klass: As what it is charged.
        protected_s: For how long nobody may take them, as the world promised; 0 promises nothing.
        priority: What the world ranked the job by, where users' priorities rank jobs of different accounts.
    """

    at_s: int
    job: str
    run: int
    placement: Placement
    klass: WorkClass
    protected_s: int = 0
    priority: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A run was told to leave; its GPUs come back after the grace, or when it ends before.

    Args:
        at_s: When.
        job: Whose run.
        run: Which.
        leaves_s: When it is gone at the latest.
    """

    at_s: int
    job: str
    run: int
    leaves_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A run gave its GPUs back.

    Args:
        at_s: When.
        job: Whose run.
        run: Which.
        why: Why.
        requeued: Whether the job waits again; otherwise it is over.
        kept_s: Work of this run that is not lost.
        lost_s: Work of this run that has to be done again.
        loading_s: What of its time went into loading.
        idle_s: What of its time nobody used, after the work was done.
    """

    at_s: int
    job: str
    run: int
    why: Departure
    requeued: bool
    kept_s: int
    lost_s: int
    loading_s: int
    idle_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HostChanged:
    """A host is in another condition from now on.

    Args:
        at_s: When.
        host: Which.
        condition: Which condition.
        planned: Whether a repair was asked for, rather than a fault that happened.
    """

    at_s: int
    host: str
    condition: HostCondition
    planned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UserAsked:
    """Somebody had to ask a user to give up GPUs, because a host has to be emptied.

    Args:
        at_s: When.
        host: Which host.
        job: Whose run.
    """

    at_s: int
    host: str
    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """What is kept free for waiting jobs from now on: milli-GPU by host, of those that nobody occupies."""

    at_s: int
    placement: Placement


Fact = Submitted | Cancelled | Started | Told | Left | HostChanged | UserAsked | Reserved
