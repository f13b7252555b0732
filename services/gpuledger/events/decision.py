"""What an admission decided about one attempt to run, and what GPU-time it set aside."""

import msgspec

from gpuledger.events.fields import Composed, Count, Instant, Label, Name
from gpuledger.events.workload import WorkloadClass, WorkloadFact


class DecisionMade(WorkloadFact, frozen=True, kw_only=True, omit_defaults=True):
    """An attempt was admitted in a class; an allocated one has GPU-time set aside.

    Args:
        attempt: Which start of the workload the decision is about; 1 for the first.
        klass: ``allocated`` or ``unallocated`` (key ``class``).
        account: The leaf that pays.
        gpus_milli: GPUs that were asked for.
        hold_gpu_ms: What is set aside, physical: GPUs x the time that is protected; 0 without a hold.
        reason: Why it is so, one sentence with its numbers.
        gpu_model: The model that was asked for; it gives the hold its weight.
        expires_at: A start at or after this finds no hold any more.
        extends_from: The hold is the next slice of a run that goes on: it begins here, not at the start.
        seen_seq: The newest row of the book that it was made under; of two decisions in one second the later counts.
        org_seq: The row of ``~org`` that shares and overdraft rules were read under.
    """

    attempt: Count
    klass: WorkloadClass = msgspec.field(name="class")
    account: Name
    gpus_milli: Count
    hold_gpu_ms: Count
    reason: Composed
    gpu_model: Label | None = None
    expires_at: Instant | None = None
    extends_from: Instant | None = None
    seen_seq: Count = 0
    org_seq: Count = 0

    def __post_init__(self) -> None:
        """Refuse a hold that is no whole number of seconds of the GPUs, or that an unallocated run would have."""
        if self.hold_gpu_ms and (self.gpus_milli == 0 or self.hold_gpu_ms % self.gpus_milli):
            raise ValueError("hold_gpu_ms is not gpus_milli times whole seconds")
        if self.hold_gpu_ms and self.klass == "unallocated":
            raise ValueError("hold_gpu_ms: nothing is set aside for an unallocated run")

    @property
    def hold_s(self) -> int:
        """For how long the GPUs are set aside."""
        return self.hold_gpu_ms // self.gpus_milli if self.hold_gpu_ms else 0
