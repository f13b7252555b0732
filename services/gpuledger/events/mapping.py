"""One rule of a mapping: which foreign names it is about, and what they mean here."""

from typing import Literal

import msgspec

from gpuledger.events.fields import Count, Name
from gpuledger.events.workload import WorkloadClass

Kind = Literal["train", "debug", "interactive", "inference"]


class MappingRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a source says of a workload -> who pays, and under which terms it runs.

    Names are globs, of which one must match; each condition that is given must hold.

    Args:
        cluster: Clusters that the rule is about; all unless given.
        account: The account as the source gave it.
        user: People, in full and not as globs; the journal keeps tokens in their place.
        labels: Label -> values, such as partition, qos, queue or namespace.
        to: Path of the account that pays, ``{...}`` for parts of the foreign name; as the source gave it unless given.
        klass: ``unallocated`` runs free of charge and preemptible (key ``class``).
        minimum_runtime_s: For workloads that declare none; 3600 unless given, 0 means unallocated.
        resumable: For workloads that do not say; they can resume unless given.
        kind: For workloads that do not say; ``train`` unless given.
    """

    cluster: tuple[Name, ...] = ()
    account: tuple[Name, ...] = ()
    user: tuple[Name, ...] = ()
    labels: dict[Name, tuple[Name, ...]] = {}
    to: Name | None = None
    klass: WorkloadClass | None = msgspec.field(default=None, name="class")
    minimum_runtime_s: Count | None = None
    resumable: bool | None = None
    kind: Kind | None = None
