"""What is proposed, what would come of it, and divisions that are tried out."""

from enum import StrEnum
from typing import Any

import msgspec

from gpuledger.client.answers import Answer


class Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An account of a tree that is tried out; GPUs in thousandths, use in gpu_ms."""

    account: str
    share: int = 1
    demand_milli: int = 0
    limit_milli: int | None = None
    used_gpu_ms: int = 0


class Tree(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A supply, in thousandths of a GPU, and the accounts that it is divided among."""

    supply_milli: int
    accounts: tuple[Node, ...]
    window_gpu_ms: int | None = None


class Divided(Answer, frozen=True, kw_only=True):
    """Account -> GPUs; the leaves, next to be served first; and what nobody asks for."""

    issued: dict[str, str]
    order: tuple[str, ...]
    idle: str


class Step(StrEnum):
    """What can be said of a proposal."""

    COMMENT = "comments"
    APPROVE = "approval"
    REJECT = "rejection"
    WITHDRAW = "withdrawal"


class Wish(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is asked for, under the keys of docs/api.md."""

    reason: str
    cluster: str | None = None
    shares: tuple[dict[str, Any], ...] = ()
    grants: tuple[dict[str, Any], ...] = ()
    transfers: tuple[dict[str, Any], ...] = ()
    effective_at: str | None = None
    decide_by: str | None = None
    simulation: dict[str, Any] | None = None


class Said(Answer, frozen=True, kw_only=True):
    """What somebody said, and when."""

    at: str
    by: str
    text: str


class ShareEffect(Answer, frozen=True, kw_only=True):
    """What new shares change for one leaf on one cluster; GPU-time of what is installed in the period."""

    cluster: str
    account: str
    before_ppm: int
    after_ppm: int
    before_gpu_ms: int
    after_gpu_ms: int


class BudgetEffect(Answer, frozen=True, kw_only=True):
    """What an account gains in a period, and what it has left before; null while it has no balance."""

    account: str
    period: str
    added_gpu_ms: int
    available_gpu_ms: int | None


class Effect(Answer, frozen=True, kw_only=True):
    """What a proposal changes, as the books stood when it was made."""

    period: str | None = None
    shares: tuple[ShareEffect, ...] = ()
    budgets: tuple[BudgetEffect, ...] = ()


class Proposal(Answer, frozen=True, kw_only=True):
    """A proposal, what was said of it, and what became of it."""

    proposal: str
    cluster: str | None
    state: str
    overdue: bool
    by: str
    reason: str
    proposed_at: str
    effective_at: str | None
    decide_by: str | None
    shares: tuple[dict[str, Any], ...]
    grants: tuple[dict[str, Any], ...]
    transfers: tuple[dict[str, Any], ...]
    effect: Effect | None
    simulation: dict[str, Any] | None
    comments: tuple[Said, ...]
    decided: Said | None
    seq: int | None


class OneProposal(Proposal, frozen=True, kw_only=True):
    """One proposal and its instant."""

    as_of: str


class Proposals(Answer, frozen=True, kw_only=True):
    """Proposals, the newest first."""

    proposals: tuple[Proposal, ...]
    next: int | None
    as_of: str


class Made(Answer, frozen=True, kw_only=True):
    """What became of a wish."""

    applied: bool
    repeated: bool
    proposal: str
    effect: Effect | None
    seq: int | None
    key: str
