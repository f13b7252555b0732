"""Facts about changes of budgets that somebody proposes: what was proposed and said, and who decided.

A proposal belongs to one book, so that its approval and what it orders are one transaction: shares to the
organisation's, GPU-time to that of its cluster.
"""

import msgspec

from gpuledger.events.fields import Count, Form, Instant, Name, Person, Positive, Typed


class NewShare(msgspec.Struct, frozen=True, kw_only=True):
    """An account's weight among its siblings, as it would be."""

    account: Name
    share: Count


class NewGrant(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """GPU-time that an account would be given; see ``budget.granted``."""

    account: Name
    period: Form
    gpu_ms: Positive
    priority: int | None = None
    expires_at: Instant | None = None
    rollover: Form | None = None


class NewTransfer(msgspec.Struct, frozen=True, kw_only=True):
    """GPU-time that one leaf would give to another; see ``budget.transferred``."""

    account: Name
    to: Name
    period: Form
    gpu_ms: Positive


class ShareEffect(msgspec.Struct, frozen=True, kw_only=True):
    """What new shares change for one leaf on one cluster.

    Args:
        before_ppm: Its part of the cluster in parts per million, rounded down.
        after_ppm: The same under the new shares.
        before_gpu_ms: Its part of what is installed in the period of the effect.
        after_gpu_ms: The same under the new shares.
    """

    cluster: Name
    account: Name
    before_ppm: Count
    after_ppm: Count
    before_gpu_ms: Count
    after_gpu_ms: Count


class BudgetEffect(msgspec.Struct, frozen=True, kw_only=True):
    """What grants and transfers change for one account in one period.

    Args:
        added_gpu_ms: What it gets, less what it gives away; weighted milli-GPU-seconds.
        available_gpu_ms: What it has left before; below zero once it is overspent, null while it has no balance.
    """

    account: Name
    period: Form
    added_gpu_ms: int
    available_gpu_ms: int | None


class SimulatedAccount(msgspec.Struct, frozen=True, kw_only=True):
    """What a simulation says of one account, under the shares before and those proposed.

    Args:
        before_gpu_ms: What it got.
        before_wait_p90_s: Nine in ten of its jobs waited no longer, in seconds; null where too few were started.
    """

    account: Name
    before_gpu_ms: Count
    after_gpu_ms: Count
    before_wait_p90_s: Count | None
    after_wait_p90_s: Count | None


class Simulated(msgspec.Struct, frozen=True, kw_only=True):
    """What a simulation says of a proposal, as whoever proposes it ran it.

    Args:
        scenario: The scenario's name.
        seed: What chance was drawn from.
        days: How many days were measured.
        accounts: What it says of each account.
    """

    scenario: Name
    seed: Count
    days: Positive
    accounts: list[SimulatedAccount]


class Effect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a proposal would change, as the books stood when it was made.

    Args:
        period: The budget period that new shares are shown for: that of the day on which they take effect.
        shares: The leaves whose part changes.
        budgets: The accounts that GPU-time is given to or taken from.
    """

    period: Form | None = None
    shares: list[ShareEffect] = []
    budgets: list[BudgetEffect] = []


class Proposed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody asks for changes, which are made together or not at all.

    Args:
        proposal: Its name, unique within the book.
        cluster: The cluster whose GPU-time would be moved; absent for shares, which hold on every cluster.
        shares: New shares.
        grants: New grants.
        transfers: New transfers.
        effective_at: From when on new shares hold; from the approval on unless given, and never before it.
        decide_by: When an answer is due.
        simulation: What a simulation says of it, as who proposes it ran one.
        effect: What it would change, as the ledger worked it out.
        by: Who proposes it.
        reason: The case for it.
    """

    proposal: Name
    cluster: Name | None = None
    shares: list[NewShare] = []
    grants: list[NewGrant] = []
    transfers: list[NewTransfer] = []
    effective_at: Instant | None = None
    decide_by: Instant | None = None
    simulation: Simulated | None = None
    effect: Effect | None = None
    by: Person
    reason: Typed


class Commented(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody said something about a proposal; ``reason`` is what."""

    proposal: Name
    cluster: Name | None = None
    by: Person
    reason: Typed


class Approved(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A proposal was approved; what it orders stands in the rows after this one."""

    proposal: Name
    cluster: Name | None = None
    by: Person
    reason: Typed


class Rejected(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A proposal was turned down, and changes nothing."""

    proposal: Name
    cluster: Name | None = None
    by: Person
    reason: Typed


class Withdrawn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who proposed it took it back."""

    proposal: Name
    cluster: Name | None = None
    by: Person
    reason: Typed


Decided = Approved | Rejected | Withdrawn
"""What ends a proposal."""
