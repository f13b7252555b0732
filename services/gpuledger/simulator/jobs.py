"""What users ask for, and what becomes of each ask when GPUs are handed over. Values only.

GPUs are milli-GPU, instants whole seconds since 1970-01-01T00:00:00Z, lengths seconds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from gpuledger.events.mapping import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One ask for GPUs, with what only the simulator knows: how long the work takes.

    What a world may look at is what a scheduler is told: everything but ``work_s``, ``idle_s``, ``startup_s`` and
    ``patience_s``.

    Args:
        job: Its id, unique in a simulation; the same in each world that runs the same demand.
        account: The path of the account that pays.
        user: Who asks.
        kind: What it is for.
        gpus_milli: GPUs asked for, all at once.
        submitted_s: When it is submitted.
        work_s: How long it works, undisturbed, until it is done; loading is not part of it.
        minimum_runtime_s: The shortest occupancy that makes progress, as declared; 0 asks to run unallocated.
        time_limit_s: A run ends after this long at the latest, as declared; None without a limit.
        priority: As the user states it, higher first.
        gpu_model: The model it insists on, if any.
        startup_s: What each run needs to load, before it works.
        checkpoint_s: It saves its work each time it has worked for so long; None never saves. Work since is lost when
            its GPUs are taken.
        idle_s: It keeps its GPUs for so long after its work is done (a session that nobody closes).
        patience_s: Its user cancels it when it waited for so long; None waits for ever.
        resumable: Whether it is queued again when its GPUs are taken; otherwise it ends.
        labels: What the source says of it in its own words.
    """

    job: str
    account: str
    user: str
    kind: Kind = "train"
    gpus_milli: int
    submitted_s: int
    work_s: int
    minimum_runtime_s: int
    time_limit_s: int | None = None
    priority: int = 0
    gpu_model: str | None = None
    startup_s: int = 0
    checkpoint_s: int | None = None
    idle_s: int = 0
    patience_s: int | None = None
    resumable: bool = True
    labels: Mapping[str, str] | None = None


class Demand(Protocol):
    """Where jobs come from. Same seed, same jobs: what it draws depends on nobody else's draws."""

    def first(self) -> Iterable[Job]:
        """Return what is submitted whatever happens, in order of submission; it is read as it is needed."""
        ...

    def after(self, job: Job, at_s: int) -> Iterable[Job]:
        """Return what the user asks for once a job is over (done or cancelled); not before the instant."""
        ...
