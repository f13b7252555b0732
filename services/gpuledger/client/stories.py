"""A workload's story as the API tells it."""

from typing import Any

from gpuledger.client.answers import Answer


class Happening(Answer, frozen=True, kw_only=True):
    """One thing that happened to a workload; what is estimated nobody said."""

    at: str
    what: str
    text: str
    run: str | None
    estimated: bool


class Cost(Answer, frozen=True, kw_only=True):
    """What is booked for a workload, and what it used since."""

    charged_gpu_ms: int
    unallocated_gpu_ms: int
    credited_gpu_ms: int
    not_booked_yet_gpu_ms: int


class Level(Answer, frozen=True, kw_only=True):
    """Where one account of a workload's path stood among its siblings; ``before`` come first."""

    account: str
    ratio: str | None
    used_gpu_ms: int
    entitled_gpu_ms: int
    before: tuple[dict[str, str | None], ...]
    par_gpu_ms: int = 0
    share_ppm: int = 1_000_000


class WorkloadDecision(Answer, frozen=True, kw_only=True):
    """What the newest cycle decided about a workload, and why."""

    cycle: str
    at: str
    action: str
    reason: str
    chain: tuple[Level, ...]
    starts_by: str | None
    certainty: str | None


class Workload(Answer, frozen=True, kw_only=True):
    """A workload's story.

    ``decision`` while it waits, ``ahead`` where it was asked for, ``unpaid`` where no budget lets it be funded,
    ``lines`` all of it in plain words.
    """

    workload: str
    cluster: str
    at: str
    account: str
    state: str
    gpus_milli: int
    events: tuple[Happening, ...]
    cost: Cost
    decision: WorkloadDecision | None
    ahead: dict[str, Any] | None
    as_of: str
    unpaid: str | None = None
    lines: tuple[str, ...] = ()
