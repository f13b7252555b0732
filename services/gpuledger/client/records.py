"""What the books tell of hosts, accounts and closes, as frozen values; null is unknown."""

from typing import Any

import msgspec

from gpuledger.client.answers import Answer


class HostRow(Answer, frozen=True, kw_only=True):
    """A host that is installed, and how well its worst part is."""

    cluster: str
    host: str
    gpu_model: str
    gpus: int
    usable_gpus: int
    state: str
    since: str
    reason: str | None
    partial_use: bool


class Hosts(Answer, frozen=True, kw_only=True):
    """A page of hosts; ``next`` is the ``after`` of the next one."""

    hosts: tuple[HostRow, ...]
    next: int | None
    as_of: str


class StayingRun(Answer, frozen=True, kw_only=True):
    """A run that is still on a host that is being emptied."""

    workload: str
    run: str
    account: str
    gpus_milli: int
    protected_until: str


class DrainRow(Answer, frozen=True, kw_only=True):
    """A host that takes no new runs, and when it is empty."""

    cluster: str
    host: str
    gpus_milli: int
    empty_by: str
    certainty: str
    text: str
    runs: tuple[StayingRun, ...]


class Drains(Answer, frozen=True, kw_only=True):
    """Drains in progress."""

    drains: tuple[DrainRow, ...]
    next: int | None
    as_of: str


class CreditedRun(Answer, frozen=True, kw_only=True):
    """A run that a failure ended, and what became of its credit."""

    run: str
    account: str | None
    state: str
    credited_gpu_ms: int
    credited_under: str | None
    reason: str | None
    by: str | None


class Incident(Answer, frozen=True, kw_only=True):
    """A failure of hardware, with the runs that the caller reaches."""

    cluster: str
    incident: str
    host: str
    fault: str
    gpu_uuids: tuple[str, ...] | None
    noticed_at: str
    runs: tuple[CreditedRun, ...]
    credited_gpu_ms: int


class Incidents(Answer, frozen=True, kw_only=True):
    """Failures of hardware, by cluster and time."""

    incidents: tuple[Incident, ...]
    next: int | None
    as_of: str


class ShareSince(Answer, frozen=True, kw_only=True):
    """A share, and from when on it holds."""

    from_: str = msgspec.field(name="from")
    seq: int
    share: int


class OverdraftSince(Answer, frozen=True, kw_only=True):
    """An overdraft, and from when on it holds."""

    from_: str = msgspec.field(name="from")
    seq: int
    overdraft: str


class Account(Answer, frozen=True, kw_only=True):
    """An account, what is in force for it, and what was ever set."""

    account: str
    parent: str | None
    is_leaf: bool
    created_seq: int
    created_at: str
    share: int | None
    overdraft: str | None
    shares: tuple[ShareSince, ...]
    overdrafts: tuple[OverdraftSince, ...]


class Accounts(Answer, frozen=True, kw_only=True):
    """The tree of accounts, by path."""

    accounts: tuple[Account, ...]
    next: int | None
    as_of: str


class CloseRow(Answer, frozen=True, kw_only=True):
    """One version of the close of a period."""

    cluster: str
    period: str
    version: int
    state: str
    closing_seq: int
    begun_at: str
    closed_seq: int | None
    sealed_seq: int | None
    sealed_at: str | None
    digest: str | None
    reopened_seq: int | None


class Closes(Answer, frozen=True, kw_only=True):
    """Closes, by cluster, period and version."""

    closes: tuple[CloseRow, ...]
    next: int | None
    as_of: str


class OneClose(CloseRow, frozen=True, kw_only=True):
    """One close and what was sealed, or the part of it within reach."""

    document: dict[str, Any] | None
    whole: bool
    reason: str | None
    as_of: str
