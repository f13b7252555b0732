"""What can be told, and the id by which it is told once.

A notice is a value. Its id follows from what it is about (its key) and from nothing else: whoever comes to the same
conclusion again, in whatever process and order, has the same notice.
"""

import datetime as dt
import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from gpuledger.kernel.clock import iso

ID_PREFIX = "ntc_"


class Kind(StrEnum):
    """What a notice is about; the ``type`` of its payload."""

    BUDGET_THRESHOLD = "budget.threshold"
    BUDGET_OVERRUN = "budget.overrun"
    CHECK_FAILED = "check.failed"
    CLOSE_SEALED = "close.sealed"
    CLOSE_REOPENED = "close.reopened"
    CLOSE_FAILED = "close.failed"
    PROPOSAL_MADE = "proposal.made"
    PROPOSAL_DUE = "proposal.due"
    PROPOSAL_DECIDED = "proposal.decided"
    TEST = "test"


class Audience(StrEnum):
    """Who may be told: what names an account is for those who answer for it, or for a node above it."""

    ACCOUNT = "account"
    OPERATORS = "operators"
    EVERYBODY = "everybody"


class Data(msgspec.Struct, frozen=True, kw_only=True):
    """What a payload tells besides its type and time. Keys may be added to it, and keep their meaning."""


class BudgetThreshold(Data, frozen=True, kw_only=True):
    """An account has spent a part of what it was given for a period.

    Args:
        cluster: The cluster.
        period: The budget period, such as 2026-12.
        account: The account; an inner one stands for all below it.
        threshold_percent: The part that was reached.
        spent_gpu_ms: Charged less credited, weighted.
        given_gpu_ms: Granted, rolled over and transferred into the period, weighted; what expired counts too.
    """

    cluster: str
    period: str
    account: str
    threshold_percent: int
    spent_gpu_ms: int
    given_gpu_ms: int


class BudgetOverrun(Data, frozen=True, kw_only=True):
    """A leaf account will, as the forecast has it, be delivered more by the end of a period than its budget funds.

    Args:
        cluster: The cluster.
        period: The budget period, such as 2026-12.
        account: The leaf account.
        funds_gpu_ms: What may be spent by the end of the period, weighted.
        forecast_gpu_ms: Delivered by the end of the period, in the middle one of all futures.
        low_gpu_ms: Where the band begins.
        high_gpu_ms: Where the band ends.
        band_percent: How many of a hundred futures the band holds.
        as_of: Nothing that happened later was looked at.
    """

    cluster: str
    period: str
    account: str
    funds_gpu_ms: int
    forecast_gpu_ms: int
    low_gpu_ms: int
    high_gpu_ms: int
    band_percent: int
    as_of: str


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """An expectation that does not hold.

    Args:
        expectation: What was expected, in words.
        rows_count: How many rows fail; null where it is not about rows.
        rows: Some of them: column -> value.
    """

    expectation: str
    rows_count: int | None
    rows: list[dict[str, str]]


class CheckFailed(Data, frozen=True, kw_only=True):
    """Rows of a table of the warehouse are not as they must be; what is computed from them was not computed.

    Args:
        cluster: The cluster.
        table: The table, in schema ``warehouse``.
        from_day: The first day (UTC) that was restated.
        to_day: The day after the last one.
        findings: What does not hold, with rows.
        page: Where people read all that was tried; null where no web server shows it.
    """

    cluster: str
    table: str
    from_day: str
    to_day: str
    findings: list[Finding]
    page: str | None = None


class CloseSealed(Data, frozen=True, kw_only=True):
    """A budget period of a cluster was closed.

    Args:
        cluster: The cluster.
        period: The budget period, such as 2026-12.
        version: 1 for the first close, one more after each reopening.
        digest: SHA-256 of the sealed file, hexadecimal.
        sealed_at: When its digest was recorded.
    """

    cluster: str
    period: str
    version: int
    digest: str
    sealed_at: str


class CloseReopened(Data, frozen=True, kw_only=True):
    """A closed period takes bookings again; the close that was sealed no longer holds.

    Args:
        cluster: The cluster.
        period: The budget period, such as 2026-12.
        version: The version that no longer holds.
        reopened_at: When that was recorded.
    """

    cluster: str
    period: str
    version: int
    reopened_at: str


class CloseFailed(Data, frozen=True, kw_only=True):
    """The scheduled close of a period stopped, and sealed nothing.

    Args:
        cluster: The cluster.
        period: The budget period, such as 2026-12.
        step: The step at which it stopped.
        message: Why.
        findings: What was found, a line each.
    """

    cluster: str
    period: str
    step: str
    message: str
    findings: list[str]


class AskedShare(msgspec.Struct, frozen=True, kw_only=True):
    """An account's weight among its siblings, as it would be.

    Args:
        account: The account.
        share: Its weight.
    """

    account: str
    share: int


class AskedTime(msgspec.Struct, frozen=True, kw_only=True):
    """GPU-time that an account would get.

    Args:
        account: Who would get it.
        giver: Who would give it away; null where it would be granted anew.
        period: The budget period.
        gpu_ms: How much, weighted.
    """

    account: str
    giver: str | None
    period: str
    gpu_ms: int


class ProposalMade(Data, frozen=True, kw_only=True):
    """Somebody asks for other shares or for GPU-time, and an answer is wanted. Who and why stands in the proposal.

    Args:
        proposal: Its name, as ``gpuledger proposal show`` takes it.
        cluster: The cluster whose GPU-time it asks for; null of shares.
        accounts: Every account that it names.
        shares: The shares that it asks for.
        times: The GPU-time that it asks for.
        effective_at: From when on new shares would hold; null: from the approval on.
        decide_by: When an answer is due; null where nobody said.
    """

    proposal: str
    cluster: str | None
    accounts: list[str]
    shares: list[AskedShare]
    times: list[AskedTime]
    effective_at: str | None
    decide_by: str | None


class ProposalDue(Data, frozen=True, kw_only=True):
    """An answer to a proposal is due within two days, and nobody has given one.

    Args:
        proposal: Its name.
        cluster: The cluster whose GPU-time it asks for; null of shares.
        accounts: Every account that it names.
        decide_by: When an answer is due.
    """

    proposal: str
    cluster: str | None
    accounts: list[str]
    decide_by: str


class ProposalDecided(Data, frozen=True, kw_only=True):
    """A proposal was approved, rejected or withdrawn.

    Args:
        proposal: Its name.
        cluster: The cluster whose GPU-time it asks for; null of shares.
        accounts: Every account that it names.
        state: ``approved``, ``rejected`` or ``withdrawn``.
        decided_at: When.
    """

    proposal: str
    cluster: str | None
    accounts: list[str]
    state: str
    decided_at: str


class Trial(Data, frozen=True, kw_only=True):
    """Somebody tries whether notices arrive.

    Args:
        by: Who.
    """

    by: str


CLASSES: dict[Kind, type[Data]] = {
    Kind.BUDGET_THRESHOLD: BudgetThreshold,
    Kind.BUDGET_OVERRUN: BudgetOverrun,
    Kind.CHECK_FAILED: CheckFailed,
    Kind.CLOSE_SEALED: CloseSealed,
    Kind.CLOSE_REOPENED: CloseReopened,
    Kind.CLOSE_FAILED: CloseFailed,
    Kind.PROPOSAL_MADE: ProposalMade,
    Kind.PROPOSAL_DUE: ProposalDue,
    Kind.PROPOSAL_DECIDED: ProposalDecided,
    Kind.TEST: Trial,
}

AUDIENCES: dict[Kind, Audience] = {
    Kind.BUDGET_THRESHOLD: Audience.ACCOUNT,
    Kind.BUDGET_OVERRUN: Audience.ACCOUNT,
    Kind.CHECK_FAILED: Audience.OPERATORS,  # its rows may name any account
    Kind.CLOSE_SEALED: Audience.EVERYBODY,
    Kind.CLOSE_REOPENED: Audience.EVERYBODY,
    Kind.CLOSE_FAILED: Audience.OPERATORS,  # what was found may name any account
    Kind.PROPOSAL_MADE: Audience.ACCOUNT,
    Kind.PROPOSAL_DUE: Audience.ACCOUNT,
    Kind.PROPOSAL_DECIDED: Audience.ACCOUNT,
    Kind.TEST: Audience.OPERATORS,
}


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that somebody should know.

    Args:
        kind: What it is about.
        key: What makes two of them the same; see ``id``.
        data: What is told.
        is_overtaken: It holds, and another that holds says more: it is written down as told, and told nobody.
    """

    kind: Kind
    key: tuple[str, ...]
    data: Data
    is_overtaken: bool = False

    @property
    def id(self) -> str:
        """The id under which it is told once; also the ``webhook-id`` of each attempt. It holds no full stop."""
        content = json.dumps([self.kind.value, *self.key], ensure_ascii=True, separators=(",", ":"))
        return ID_PREFIX + hashlib.sha256(content.encode()).hexdigest()[:40]

    @property
    def cluster(self) -> str | None:
        """The cluster that it is about; None for the organisation."""
        return getattr(self.data, "cluster", None)

    @property
    def account(self) -> str | None:
        """The account that it is about; None where it is about no account alone."""
        return self.accounts[0] if len(self.accounts) == 1 else None

    @property
    def accounts(self) -> tuple[str, ...]:
        """The accounts that it is about; none where it is about no account."""
        account = getattr(self.data, "account", None)
        return tuple(getattr(self.data, "accounts", ())) if account is None else (account,)

    def body(self, at: dt.datetime) -> bytes:
        """Return its payload, the same bytes at each attempt.

        Args:
            at: When it was noticed.
        """
        payload = {"type": self.kind.value, "timestamp": iso(at), "data": self.data}
        return msgspec.json.encode(payload)


def read_body(body: bytes) -> tuple[Kind, dt.datetime, Data]:
    """Return what a payload tells: its kind, when it was noticed, its data."""
    payload: dict[str, Any] = msgspec.json.decode(body)
    kind = Kind(payload["type"])
    return (
        kind,
        dt.datetime.fromisoformat(payload["timestamp"]),
        msgspec.convert(payload["data"], CLASSES[kind]),
    )
