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
from gpuledger.notify.payloads import (
    BudgetOverrun,
    BudgetThreshold,
    CheckFailed,
    CloseFailed,
    CloseReopened,
    CloseSealed,
    Data,
    ProposalDecided,
    ProposalDue,
    ProposalMade,
    Trial,
    WeeklyDigest,
)

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
    DIGEST_WEEKLY = "digest.weekly"
    TEST = "test"


class Audience(StrEnum):
    """Who may be told.

    What is about an account is for those who answer for it, or for a node above it; what is about a node alone for
    those who answer for just that node.
    """

    ACCOUNT = "account"
    NODE = "node"
    OPERATORS = "operators"
    EVERYBODY = "everybody"


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
    Kind.DIGEST_WEEKLY: WeeklyDigest,
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
    Kind.DIGEST_WEEKLY: Audience.NODE,
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
