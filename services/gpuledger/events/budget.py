"""Facts about the organisation: accounts, shares, grants, periods, and what the policy issued."""

from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec

from gpuledger.events.fields import Composed, Count, Form, Instant, Label, Name, Person, Positive, Typed
from gpuledger.events.mapping import MappingRule

PERIODS = ("month",)
"""Lengths that a budget period may have."""


class Part(StrEnum):
    """What gives an order without a person. Any other name in ``by`` is taken for a person's."""

    INGEST = "ingest"
    UNKNOWN = "unknown"


class Word(StrEnum):
    """Reasons that programs give. Any other ``reason`` of an order is taken for what a person typed."""

    APPROVED = "approved"
    BUDGET_FILE = "budget-file"
    FIRST_SIGHT = "first-sight"
    GRANTED = "granted"
    MAPPING_FILE = "mapping-file"
    POLICY_FILE = "policy-file"
    TRANSFERRED = "transferred"


class AccountCreated(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An account exists from now on; its id is the path it was created under, for ever."""

    account: Name
    by: Person | None = None
    reason: Typed | None = None


_POLICY_KEYS = {
    "organisation": ("timezone", "period"),
    "rate_card": ("weights",),
    "mapping": ("rules",),
    "xid_table": ("xid_table",),
    "settings": ("settings",),
}


class Repeated(msgspec.Struct, frozen=True, kw_only=True):
    """An XID that means trouble when it comes often: so many times within so many seconds."""

    times: Positive
    within_s: Positive


class XidTable(msgspec.Struct, frozen=True, kw_only=True):
    """What observations of a device's health mean; an XID that is in no list means nothing.

    Args:
        unhealthy: XIDs after which the device cannot be used.
        draining: XIDs after which it must be reset once its runs are over.
        application: XIDs that a program causes; they say nothing about the device.
        repeated: XID -> how often it must come for the device to be unhealthy.
        remap_failed: The state of a device whose rows could not be remapped.
        remap_pending: The state of a device that waits for a reset to remap rows.
        lost: The state of a device that the driver cannot reach.
    """

    unhealthy: list[Positive]
    draining: list[Positive]
    application: list[Positive]
    repeated: dict[int, Repeated]
    remap_failed: Literal["healthy", "draining", "unhealthy"]
    remap_pending: Literal["healthy", "draining", "unhealthy"]
    lost: Literal["healthy", "draining", "unhealthy"]

    def __post_init__(self) -> None:
        """Refuse a table that says two things of one XID."""
        codes = [*self.unhealthy, *self.draining, *self.application, *self.repeated]
        if twice := sorted({code for code in codes if codes.count(code) > 1}):
            raise ValueError(f"XID {', '.join(map(str, twice))} stands twice")


class PolicyChanged(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A version of policy data is in force from the event's time on (law 12).

    Args:
        policy: ``organisation`` (zone and period length), ``rate_card`` (weights), ``mapping``, ``xid_table`` or
            ``settings`` (knobs of the policy).
        timezone: IANA zone in which days and periods are cut.
        period: Length of a budget period.
        weights: GPU model -> weight in per mille; models that are left out keep theirs.
        rules: The whole mapping: of its rules the first that matches says what a workload means.
        supersedes: The row of ``~org`` whose mapping was in force at that time before.
        xid_table: The whole table; nothing of an earlier one stays.
        settings: Knob of the policy -> its value; null takes back what was set. Knobs that are left out keep theirs.
        on_cluster: The cluster whose cycles the settings hold for; those of every cluster unless given.
        by: Who set it.
        reason: Why.
    """

    policy: Form
    timezone: Form | None = None
    period: Form | None = None
    weights: dict[Name, Count] | None = None
    rules: list[MappingRule] | None = None
    supersedes: Positive | None = None
    xid_table: XidTable | None = None
    settings: dict[Name, int | Form | None] | None = None
    on_cluster: Name | None = None
    by: Person | None = None
    reason: Typed | None = None

    def __post_init__(self) -> None:
        """Refuse a version without the keys of its policy."""
        needed = _POLICY_KEYS.get(self.policy)
        if needed is None:
            raise ValueError(f"policy {self.policy!r} is none of {', '.join(_POLICY_KEYS)}")
        if missing := [name for name in needed if getattr(self, name) is None]:
            raise ValueError(f"policy {self.policy} lacks {', '.join(missing)}")


class PolicyApplied(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A cluster's book took over a version of policy data from the ``~org`` book; charges follow it from then on.

    Args:
        cluster: The cluster, which is also the book.
        org_seq: The row of ``~org`` that set it; of two for one moment the later row counts.
        policy: ``rate_card`` or ``mapping``.
        weights: GPU model -> weight in per mille.
        rules: The whole mapping.
        supersedes: The row of ``~org`` whose mapping was in force at that time before.
    """

    cluster: Name
    org_seq: Positive
    policy: Composed
    weights: dict[Name, Count] | None = None
    rules: list[MappingRule] | None = None
    supersedes: Positive | None = None


class ShareSet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The account's weight among its siblings from the event's time on."""

    account: Name
    share: Count
    reason: Typed
    by: Person


class OverdraftSet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What happens when the account has spent its budget, from the event's time on.

    Args:
        account: A leaf, or an inner node: then its limit binds all below it.
        overdraft: ``soft``: charges go on; ``hard``: an allocated start needs a hold that fits.
        reason: Why.
        by: Who set it.
    """

    account: Name
    overdraft: Literal["soft", "hard"]
    reason: Typed
    by: Person


class Granted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """GPU-time was given to an account for a period and cluster.

    Args:
        account: The receiving leaf.
        cluster: The cluster whose time it is.
        period: The budget period, such as ``2017-10``.
        gpu_ms: The amount, in weighted milli-GPU-seconds.
        priority: Lots are consumed in order of (priority, expiry, creation).
        expires_at: When what is left of it expires; the end of the period unless given.
        rollover: What happens to the rest at the close, as written in the budget file.
        limit: Whether the account is an inner node: then the amount caps what its subtree may spend, and
            is no GPU-time of its own.
    """

    account: Name
    cluster: Name
    period: Form
    gpu_ms: Count
    reason: Typed
    by: Person
    priority: int | None = None
    expires_at: Instant | None = None
    rollover: Form | None = None
    limit: bool = False


class Transferred(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """GPU-time of one leaf was given to another, within a cluster and a period.

    Args:
        account: The giving leaf.
        to: The receiving leaf.
        cluster: The cluster whose time it is.
        period: The budget period of both.
        gpu_ms: The amount, in weighted milli-GPU-seconds.
    """

    account: Name
    to: Name
    cluster: Name
    period: Form
    gpu_ms: Positive
    reason: Typed
    by: Person


class AdjustmentPosted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody corrected what no fact can correct; the movement is that of the code it corrects.

    Args:
        account: The leaf whose balance moves, or the inner node whose limit does.
        cluster: The cluster whose time it is.
        period: The budget period that the correction belongs to.
        code: The movement that it corrects: grant, charge, credit or unallocated.
        gpu_ms: The amount, in weighted milli-GPU-seconds; below zero it takes back.
        reason: Why.
        by: Who ordered it.
        corrects_seq: The row of the book that it corrects, where there is one.
        limit: Whether the account is an inner node: then the grants that it corrects are limits, and nothing is moved.
    """

    account: Name
    cluster: Name
    period: Form
    code: Literal["grant", "charge", "credit", "unallocated"]
    gpu_ms: Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]
    reason: Typed
    by: Person
    corrects_seq: Positive | None = None
    limit: bool = False


class PeriodGrant(msgspec.Struct, frozen=True, kw_only=True):
    """One default grant of a period's opening."""

    account: Name
    gpu_ms: Count


class PeriodOpened(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A period began for a cluster; leaves without an explicit grant get their share of it.

    Args:
        installed_gpu_ms: Installed capacity integrated over the period, physical.
        grants: The default grants; they sum to at most what is installed, in weighted units.
        org_seq: The sequence of the ``~org`` book that the shares were read under.
    """

    cluster: Name
    period: Form
    installed_gpu_ms: Count
    grants: list[PeriodGrant]
    org_seq: int


class AllocationIssued(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One cycle of the policy for one cluster: what it read, what it issued, and what it ordered.

    Decisions to wait are neither journalled nor published: a digest stands for all decisions, and a replay makes the
    same ones from what was read (docs/decisions/0035).

    Args:
        cycle: The cycle's id within the cluster.
        sequences: Vector book -> sequence that the state was read under.
        config_version: Digest of the policy configuration.
        config: The configuration, knob -> value.
        input_digest: SHA-256 of the canonical input.
        decisions_digest: SHA-256 of all decisions, in their order.
        form: In which form they were digested: 1 as JSON with every sentence, 2 as what the sentences rest on
            (docs/decisions/0042).
        rules: By which version of the rules it was decided; absent where they had no numbers yet
            (docs/decisions/0069).
        waiting: How many decisions are to wait.
        every_s: The interval at which its leader runs cycles; absent where it was run by hand.
        part: On a stream, which part of the cycle this is, from 1; a cycle that fits into one message has no parts.
        parts: On a stream, in how many parts the cycle is told.
        record: Allocations, reservations, and decisions to start or to preempt, under the keys of ``gpuledger cycle
            --json``.
    """

    cluster: Name
    cycle: Composed
    sequences: dict[Label, int]
    config_version: Composed
    config: dict[Name, int | Composed] = {}
    input_digest: Composed
    decisions_digest: Composed | None = None
    form: Positive = 1
    rules: Count = 0
    waiting: Count = 0
    every_s: Positive | None = None
    part: Positive | None = None
    parts: Positive | None = None
    record: dict[Composed, Any]


class AllocationAmended(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of submissions and ends between two cycles: orders beside those of a cycle, which stands otherwise.

    A full cycle says everything anew; amendments count until the next one, in their order (docs/decisions/0054).

    Args:
        cycle: The amendment's id within the cluster, of the same form as a cycle's.
        base: The id of the cycle that it amends.
        submissions: The workloads that it decides, in this order, beside all that amendments of the base decided
            before.
        changed: Workloads that were read anew because a run of theirs ended, began or was saved since the base or the
            amendment before, or because they were withdrawn; what was free by then is part of what was decided.
        sequences: Vector book -> sequence that they were read under.
        input_digest: SHA-256 of the submissions and of what changed, and of what was told before them.
        record: Under the keys of ``gpuledger cycle --json``: ``decisions`` are those of the submissions, starts of any
            workload, and everybody who has to leave by now; ``reservations`` are all that stand by now.
    """

    cluster: Name
    cycle: Composed
    base: Composed
    submissions: list[Name]
    changed: list[Name] = []
    sequences: dict[Label, int]
    input_digest: Composed
    record: dict[Composed, Any]
