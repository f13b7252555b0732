"""Proposals as their books tell of them: what is asked for, what was said, and what became of it.

Few rows tell of them, and an index finds these, so that each answer is worked out from the journal and no table has to
be kept beside it: what a proposal was at a recorded time is the same question as what it is.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from gpuledger.database.engine import Reader, Writer
from gpuledger.events import proposal
from gpuledger.events.envelope import ORG_BOOK, decode_data
from gpuledger.events.registry import name_of
from gpuledger.kernel.amounts import gpu_hours
from gpuledger.kernel.clock import iso
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger.copying import driver
from gpuledger.ledger.identity import personal

Step = proposal.Proposed | proposal.Commented | proposal.Approved | proposal.Rejected | proposal.Withdrawn
"""What a row says of a proposal."""

TYPES = tuple(
    name_of(kind)
    for kind in (
        proposal.Proposed,
        proposal.Commented,
        proposal.Approved,
        proposal.Rejected,
        proposal.Withdrawn,
    )
)


class State(StrEnum):
    """Where a proposal stands."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"


_ENDS = {
    proposal.Approved: State.APPROVED,
    proposal.Rejected: State.REJECTED,
    proposal.Withdrawn: State.WITHDRAWN,
}


class Told(NamedTuple):
    """One row: when the book took it, and what it says with the names and words that are kept."""

    seq: int
    recorded_at: dt.datetime
    step: Step


class Said(NamedTuple):
    """What somebody said of a proposal, and when; ``by`` is a token once the person was erased."""

    at: dt.datetime
    by: str
    text: str

    def as_json(self) -> dict[str, Any]:
        """Return it under its published keys."""
        return {"at": iso(self.at), "by": self.by, "text": self.text}


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposal and all that was said of it.

    Args:
        asked: What it asks for.
        seq: Its row in its book.
        proposed_at: When the book took it.
        state: Where it stands.
        comments: What was said of it, in the order of the book.
        decided: Who ended it, when and why; None while it is pending.
    """

    asked: proposal.Proposed
    seq: int
    proposed_at: dt.datetime
    state: State = State.PENDING
    comments: tuple[Said, ...] = ()
    decided: Said | None = None

    @property
    def book(self) -> str:
        """The book that it belongs to."""
        return self.asked.cluster or ORG_BOOK

    @property
    def accounts(self) -> tuple[str, ...]:
        """Every account that it names, sorted."""
        return accounts_of(self.asked)

    def is_overdue(self, now: dt.datetime) -> bool:
        """Say whether an answer is due and was not given."""
        due = self.asked.decide_by
        return self.state is State.PENDING and due is not None and due <= now

    def as_json(self, now: dt.datetime) -> dict[str, Any]:
        """Return it under its published keys, as it is at an instant."""
        asked = self.asked
        return {
            "proposal": asked.proposal,
            "cluster": asked.cluster,
            "state": self.state.value,
            "overdue": self.is_overdue(now),
            "by": asked.by,
            "reason": asked.reason,
            "proposed_at": iso(self.proposed_at),
            "effective_at": asked.effective_at and iso(asked.effective_at),
            "decide_by": asked.decide_by and iso(asked.decide_by),
            "shares": [{"account": change.account, "share": change.share} for change in asked.shares],
            "grants": [_grant_json(change) for change in asked.grants],
            "transfers": [
                {
                    "account": change.account,
                    "to": change.to,
                    "period": change.period,
                    "gpu_ms": change.gpu_ms,
                    "gpu_hours": str(gpu_hours(change.gpu_ms)),
                }
                for change in asked.transfers
            ],
            "effect": None if asked.effect is None else msgspec.to_builtins(asked.effect),
            "simulation": None if asked.simulation is None else msgspec.to_builtins(asked.simulation),
            "comments": [said.as_json() for said in self.comments],
            "decided": self.decided and self.decided.as_json(),
            "seq": self.seq,
        }


def accounts_of(asked: proposal.Proposed) -> tuple[str, ...]:
    """Return every account that a proposal names, sorted."""
    named = {change.account for change in asked.shares} | {change.account for change in asked.grants}
    named |= {account for change in asked.transfers for account in (change.account, change.to)}
    return tuple(sorted(named))


def folded(rows: Iterable[Told]) -> list[Proposal]:
    """Return the proposals that the rows of one book tell of, in the order in which they were made.

    What is said of none that the rows before it made says nothing.
    """
    found: dict[str, Proposal] = {}
    for seq, recorded_at, step in rows:
        if isinstance(step, proposal.Proposed):
            found.setdefault(step.proposal, Proposal(step, seq, recorded_at))
            continue
        before = found.get(step.proposal)
        if before is None:
            continue
        said = Said(recorded_at, step.by, step.reason)
        if isinstance(step, proposal.Commented):
            found[step.proposal] = replace(before, comments=(*before.comments, said))
        elif before.state is State.PENDING:
            found[step.proposal] = replace(before, state=_ENDS[type(step)], decided=said)
    return list(found.values())


def proposals(
    connection: Reader | Writer, books: Sequence[str] | None = None, *, as_of: dt.datetime | None = None
) -> list[Proposal]:
    """Return the proposals of books, of all unless given, the newest first.

    Args:
        connection: A snapshot.
        books: Clusters, and ``~org`` for shares.
        as_of: What the books said at this recorded time; now unless given.
    """
    told: dict[str, list[Told]] = {}
    for book, row in _rows(connection, books, as_of):
        told.setdefault(book, []).append(row)
    found = [made for rows in told.values() for made in folded(rows)]
    return sorted(found, key=lambda made: (made.proposed_at, made.book, made.seq), reverse=True)


def proposal_of(connection: Reader | Writer, name: str, *, as_of: dt.datetime | None = None) -> Proposal:
    """Return one proposal.

    Raises:
        NotFound: When there is none of that name.
    """
    for made in reversed(proposals(connection, as_of=as_of)):  # nothing later stands in for what has a name
        if made.asked.proposal == name:
            return made
    raise NotFound(f"there is no proposal {name!r}", hint="GET /v1/proposals lists them")


def _rows(
    connection: Reader | Writer, books: Sequence[str] | None, as_of: dt.datetime | None
) -> Iterator[tuple[str, Told]]:
    rows = driver(connection).execute(
        "SELECT j.book, j.seq, j.recorded_at, j.type, j.body::text, t.body"
        " FROM ledger.books AS b JOIN ledger.journal AS j ON j.book = b.book"
        " LEFT JOIN side.texts AS t ON t.ref = j.extra_ref"
        " WHERE j.workload IS NULL AND j.type = ANY(%(types)s)"
        " AND (%(books)s::text[] IS NULL OR b.book = ANY(%(books)s))"
        " AND j.recorded_at <= coalesce(%(as_of)s, 'infinity'::timestamptz) ORDER BY j.book, j.seq",
        {"types": list(TYPES), "books": None if books is None else list(books), "as_of": as_of},
    )
    for book, seq, recorded_at, type_, body, texts in rows.fetchall():
        step = decode_data(type_, body)
        assert isinstance(step, Step)  # noqa: S101 - of these types alone
        yield book, Told(seq, recorded_at, personal(connection, step, texts))


def _grant_json(change: proposal.NewGrant) -> dict[str, Any]:
    return {
        "account": change.account,
        "period": change.period,
        "gpu_ms": change.gpu_ms,
        "gpu_hours": str(gpu_hours(change.gpu_ms)),
        "priority": change.priority,
        "expires_at": change.expires_at and iso(change.expires_at),
        "rollover": change.rollover,
    }
