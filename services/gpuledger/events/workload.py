"""Facts about workloads and their runs. Past tense, frozen; keys as published in docs/events.md."""

from typing import Literal

import msgspec

from gpuledger.events.fields import (
    Category,
    Composed,
    Count,
    Exit,
    Instant,
    Label,
    Name,
    Person,
    Reason,
    Reference,
    User,
)

WorkloadClass = Literal["allocated", "unallocated"]


class WorkloadFact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What every fact about a workload names.

    Args:
        cluster: The cluster, which is also the book.
        workload: The workload's id within the cluster.
    """

    cluster: Name
    workload: Name


class Submitted(WorkloadFact, frozen=True, kw_only=True, omit_defaults=True):
    """A user asked for GPUs.

    Args:
        account: Path of the account that pays.
        user: The user's name; the journal keeps a token in its place.
        gpus_milli: GPUs asked for, in milli-GPU.
        minimum_runtime_s: The shortest occupancy that makes progress; 0 asks to run unallocated.
        time_limit_s: The run ends after this long at the latest.
        priority: Order inside the account, higher first.
        kind: train, debug, interactive or inference.
        eligible_at: When it may first start; the time of submission unless given.
        clusters: Clusters it may run on, first choice first.
        labels: What the source says of it in its own words, such as partition, qos, queue or namespace; never a
            person's name. Mapping rules read them.
        version: How far the source's record had come; of contradictory facts of one source the furthest counts.
    """

    account: Name
    user: User
    gpus_milli: Count
    gpu_model: Label | None = None
    minimum_runtime_s: Count | None = None
    time_limit_s: Count | None = None
    priority: int | None = None
    kind: Category | None = None
    resumable: bool | None = None
    eligible_at: Instant | None = None
    clusters: list[Label] | None = None
    labels: dict[Label, Label] | None = None
    version: Count | None = None


class Updated(WorkloadFact, frozen=True, kw_only=True, omit_defaults=True):
    """What was asked for is another from now on; what is absent stays as it was.

    Args:
        account: Path of the account that pays from now on.
        gpus_milli: GPUs asked for, in milli-GPU; a run that has them already is resized instead.
        gpu_model: Their model.
        minimum_runtime_s: As of a submission, for starts from now on.
        time_limit_s: As of a submission, for the run that goes on too; 0 for none.
        priority: As of a submission.
        kind: As of a submission.
        resumable: As of a submission.
        eligible_at: When it may start, if it waits.
        clusters: As of a submission.
        labels: Those that are another; the others stay.
        version: As of a submission.
    """

    account: Name | None = None
    gpus_milli: Count | None = None
    gpu_model: Label | None = None
    minimum_runtime_s: Count | None = None
    time_limit_s: Count | None = None
    priority: int | None = None
    kind: Category | None = None
    resumable: bool | None = None
    eligible_at: Instant | None = None
    clusters: list[Label] | None = None
    labels: dict[Label, Label] | None = None
    version: Count | None = None


class Started(WorkloadFact, frozen=True, kw_only=True, omit_defaults=True):
    """GPUs were handed over to a run.

    Args:
        run: The run's id within the workload.
        attempt: 1 for the first run of the workload.
        gpus_milli: GPUs occupied, in milli-GPU.
        hosts: Hosts it runs on, where known.
        host_gpus_milli: What it occupies on each of them, where known; adds up to ``gpus_milli``.
        gpu_uuids: The devices, where known.
        klass: ``allocated`` unless recorded otherwise (key ``class``).
        account: Overrides the account of the submission.
        user: Overrides the user of the submission.
        version: As of a submission.
    """

    run: Name
    attempt: Count
    gpus_milli: Count
    hosts: list[Label]
    host_gpus_milli: dict[Label, Count] | None = None
    gpu_model: Label | None = None
    gpu_uuids: list[Label] | None = None
    klass: WorkloadClass | None = msgspec.field(default=None, name="class")
    account: Label | None = None
    user: Person | None = None
    version: Count | None = None


class RunFact(WorkloadFact, frozen=True, kw_only=True, omit_defaults=True):
    """A fact about one run."""

    run: Name


class Resized(RunFact, frozen=True, kw_only=True, omit_defaults=True):
    """The run has another size from now on; ``host_gpus_milli`` as of a start."""

    gpus_milli: Count
    hosts: list[Label]
    host_gpus_milli: dict[Label, Count] | None = None


class Suspended(RunFact, frozen=True, kw_only=True, omit_defaults=True):
    """The run was suspended; its GPUs stay held and charged."""


class Resumed(RunFact, frozen=True, kw_only=True, omit_defaults=True):
    """The run goes on after a suspension."""


class Ready(RunFact, frozen=True, kw_only=True, omit_defaults=True):
    """The run has loaded what it needs and begins its work."""


class Checkpointed(RunFact, frozen=True, kw_only=True, omit_defaults=True):
    """The run's work up to now would survive its end.

    Args:
        restore: What its user needs to go on from here, such as a path or a command.
    """

    restore: Reference | None = None


class Located(RunFact, frozen=True, kw_only=True, omit_defaults=True):
    """What hosts call the run besides what follows from its name: samples find it by that.

    Args:
        handles: Such as ``job/8842`` or ``pod/vision/train-0`` (``kernel/handles.py``).
    """

    handles: list[Name]


class PreemptionAnnounced(RunFact, frozen=True, kw_only=True, omit_defaults=True):
    """The run was told that it has to leave, or may have to.

    Args:
        leaves_at: When its GPUs are expected back.
        reason: For whom and why, one sentence.
        asker: The workload that gets its GPUs; absent when its host is emptied.
        foreseen: Whether it is foreseen only: the run stays if its GPUs turn out not to be needed.
        ends: Whether it ends then, for it cannot go on later.
    """

    leaves_at: Instant
    reason: Composed
    asker: Label | None = None
    foreseen: bool = False
    ends: bool = False


class ClassChanged(RunFact, frozen=True, kw_only=True, omit_defaults=True):
    """The run is of another class from now on (key ``class``)."""

    klass: WorkloadClass = msgspec.field(name="class")
    reason: Reason


class Stopped(WorkloadFact, frozen=True, kw_only=True, omit_defaults=True):
    """Common shape of preempted, requeued and ended.

    Args:
        run: The run; absent when the workload ended before any run of it started.
        reason: Why, in the source's own word (a short code, not prose).
        exit: The source's exit code, where it has one.
        estimated: The time is the last evidence of life, not the true end.
        version: As of a submission.
    """

    reason: Reason
    run: Label | None = None
    exit: Exit | None = None
    estimated: bool | None = None
    version: Count | None = None


class Preempted(Stopped, frozen=True, kw_only=True, omit_defaults=True):
    """The system took the GPUs back."""


class Requeued(Stopped, frozen=True, kw_only=True, omit_defaults=True):
    """The run ended and the workload waits again."""


class Ended(Stopped, frozen=True, kw_only=True, omit_defaults=True):
    """The run ended (or the workload, when it names no run)."""
