"""Proposals as types: what is sent to make, discuss and decide one, and what the API answers."""

import datetime as dt
from typing import Annotated

import msgspec
from pydantic import Field

from gpuledger.api.answers import Answer, AsOf
from gpuledger.api.bodies import Body, GpuMs, Name, Reason, UtcInstant
from gpuledger.api.parameters import PERIOD, PRINTABLE
from gpuledger.events import proposal
from gpuledger.kernel.rollover import written
from gpuledger.ledger.proposing import CHANGES_MAX

SHARE_MAX = 10**9

Period = Annotated[str, Field(pattern=PERIOD, description="Budget period, YYYY-MM.", examples=["2026-12"])]
Seconds = Annotated[int, Field(ge=0, le=10**10)]


class ShareBody(Body):
    """A new share."""

    account: Name
    share: int = Field(ge=0, le=SHARE_MAX, description="Weight among its siblings; 0 is issued nothing.")


class NewGrantBody(Body):
    """GPU-time for an account; on an inner account a limit for all below it."""

    account: Name
    period: Period
    gpu_ms: GpuMs
    priority: int | None = Field(default=None, ge=-(10**9), le=10**9, description="Order among lots.")
    expires_at: UtcInstant | None = Field(default=None, strict=False)
    rollover: str | None = Field(
        default=None, max_length=100, pattern=PRINTABLE, description="none, all, max 100"
    )


class NewTransferBody(Body):
    """GPU-time that one leaf gives to another."""

    account: Name = Field(description="Who gives.")
    to: Name
    period: Period
    gpu_ms: GpuMs


class SimulatedAccountBody(Body):
    """What a simulation says of one account."""

    account: Name
    before_gpu_ms: int = Field(ge=0, le=2**53)
    after_gpu_ms: int = Field(ge=0, le=2**53)
    before_wait_p90_s: Seconds | None
    after_wait_p90_s: Seconds | None


class SimulatedBody(Body):
    """What a simulation says of a proposal; `gpuledger simulate compare` runs one."""

    scenario: str = Field(max_length=100, pattern=r"^[A-Za-z0-9_.-]+$")
    seed: int = Field(ge=0, le=2**53)
    days: int = Field(ge=1, le=3660)
    accounts: list[SimulatedAccountBody] = Field(max_length=200)


class ProposalBody(Body):
    """What is asked for: shares, or GPU-time of one cluster."""

    reason: Reason
    cluster: Name | None = Field(
        default=None, description="Whose GPU-time is moved; left out for shares, which hold on every cluster."
    )
    shares: list[ShareBody] = Field(default=[], max_length=CHANGES_MAX)
    grants: list[NewGrantBody] = Field(default=[], max_length=CHANGES_MAX)
    transfers: list[NewTransferBody] = Field(default=[], max_length=CHANGES_MAX)
    effective_at: UtcInstant | None = Field(
        default=None,
        strict=False,
        description="From when on new shares hold; from the approval on unless given, and never before it.",
    )
    decide_by: UtcInstant | None = Field(default=None, strict=False, description="When an answer is due.")
    simulation: SimulatedBody | None = Field(
        default=None, description="What a simulation says of it, for those who decide."
    )

    def as_fact(self, name: str, by: str) -> proposal.Proposed:
        """Return it as it is booked.

        Args:
            name: The proposal's name.
            by: Who proposes it.

        Raises:
            Refused: When a rollover is no rule.
        """
        simulation = None
        if self.simulation is not None:
            simulation = msgspec.convert(self.simulation.model_dump(), proposal.Simulated)
        return proposal.Proposed(
            proposal=name,
            cluster=self.cluster,
            shares=[proposal.NewShare(**change.model_dump()) for change in self.shares],
            grants=[
                proposal.NewGrant(**change.model_dump() | {"rollover": written(change.rollover)})
                for change in self.grants
            ],
            transfers=[proposal.NewTransfer(**change.model_dump()) for change in self.transfers],
            effective_at=_whole(self.effective_at),
            decide_by=_whole(self.decide_by),
            simulation=simulation,
            by=by,
            reason=self.reason,
        )


class SayingBody(Body):
    """A comment, or why something is decided."""

    reason: Reason


class Said(Answer):
    """What somebody said, and when."""

    at: str
    by: str = Field(description="A token once the person was erased.")
    text: str


class Proposal(Answer):
    """A proposal, what was said of it, and what became of it."""

    proposal: str
    cluster: str | None
    state: str = Field(description="pending, approved, rejected or withdrawn")
    overdue: bool = Field(description="Whether an answer is due and was not given.")
    by: str
    reason: str
    proposed_at: str
    effective_at: str | None
    decide_by: str | None
    shares: list[dict[str, str | int]]
    grants: list[dict[str, str | int | None]]
    transfers: list[dict[str, str | int]]
    effect: dict[str, object] | None = Field(
        description="What it changes, as the books stood when it was made: parts of clusters for shares, and what"
        " is left to spend for GPU-time."
    )
    simulation: dict[str, object] | None = Field(
        description="What a simulation says, as the proposer ran it."
    )
    comments: list[Said]
    decided: Said | None
    seq: int | None = Field(description="Its row in its book; null for a dry run.")


class OneProposal(Proposal):
    """One proposal."""

    as_of: str = AsOf


class Proposals(Answer):
    """Proposals, the newest first."""

    proposals: list[Proposal]
    next: int | None = Field(description="Ask again with it as `after`.")
    as_of: str = AsOf


class Made(Answer):
    """What became of a proposal that was sent."""

    applied: bool
    repeated: bool = Field(description="Whether it had been booked before under the same key.")
    proposal: str = Field(description="The name under which it is discussed and decided.")
    effect: dict[str, object] | None = Field(
        description="What it changes, as the books stand; null when repeated."
    )
    seq: int | None = Field(description="Its row in its book; null for a dry run.")
    key: str


def _whole(at: dt.datetime | None) -> dt.datetime | None:
    """Return an instant without its part of a second."""
    return at and at.replace(microsecond=0)
