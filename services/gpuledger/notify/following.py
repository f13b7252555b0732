"""Which notices follow from what the books and the warehouse say. Pure: the same state, the same notices.

What follows is all that holds, whether it was told before or not; what was told is the outbox's to know.
"""

import datetime as dt
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gpuledger.kernel.clock import iso
from gpuledger.notify.notices import Kind, Notice
from gpuledger.notify.payloads import (
    BudgetOverrun,
    BudgetThreshold,
    CheckFailed,
    CloseFailed,
    CloseReopened,
    CloseSealed,
    Finding,
    ProposalDecided,
    ProposalDue,
    ProposalMade,
    WeeklyDigest,
)
from gpuledger.notify.thresholds import Spent, by_node, reached

LOOK_BACK = dt.timedelta(days=7)
"""What is longer past is told no more: who turns notices on hears of what is now, not of years of closed periods."""


REMINDED = dt.timedelta(days=2)
"""How long before an answer to a proposal is due people are reminded."""


class Close(NamedTuple):
    """A version of the close of a period, as its book tells of it.

    Args:
        sealed_at: When its digest was recorded; None before.
        reopened_at: When it was undone; None while it holds.
    """

    cluster: str
    period: str
    version: int
    digest: str | None
    sealed_at: dt.datetime | None
    reopened_at: dt.datetime | None


class Asked(NamedTuple):
    """A proposal, as its book tells of it.

    Args:
        data: What it asks for.
        proposed_at: When its book took it.
        decide_by: When an answer is due; None where nobody said.
        state: ``pending``, or what became of it.
        decided_at: When; None while it is pending.
    """

    data: ProposalMade
    proposed_at: dt.datetime
    decide_by: dt.datetime | None
    state: str
    decided_at: dt.datetime | None


@dataclass(frozen=True, slots=True)
class State:
    """What notices follow from.

    Args:
        budgets: What leaf accounts have spent, of periods that go on or ended within ``LOOK_BACK``.
        overruns: Leaf accounts whose budget will not do, of periods that go on.
        closes: Every version of every close.
        proposals: Every proposal.
        digests: The last week, for each node that somebody wants to be told of.
    """

    budgets: Sequence[Spent] = ()
    overruns: Sequence[BudgetOverrun] = ()
    closes: Sequence[Close] = ()
    proposals: Sequence[Asked] = ()
    digests: Sequence[WeeklyDigest] = ()


def following(state: State, thresholds: Sequence[int], now: dt.datetime) -> list[Notice]:
    """Return every notice that follows from a state, each once, in order of their ids.

    Args:
        state: What the books and the warehouse say.
        thresholds: Per cent of a budget that are told of.
        now: The present.
    """
    found = [
        *_of_budgets(state.budgets, thresholds),
        *(_of_overrun(each) for each in state.overruns),
        *_of_closes(state.closes, now - LOOK_BACK),
        *(notice for each in state.proposals for notice in _of_proposal(each, now)),
        *(_of_week(each) for each in state.digests),
    ]
    return sorted(found, key=lambda notice: notice.id)


def check_failed(
    cluster: str,
    table: str,
    days: tuple[dt.date, dt.date],
    findings: Sequence[Finding],
    now: dt.datetime,
    *,
    page: str | None = None,
) -> Notice:
    """Return the notice of a gate that stopped a table; the same one for a week as long as the same things fail.

    Args:
        cluster: The cluster.
        table: The table, in schema ``warehouse``.
        days: The first day that was restated, and the day after the last one.
        findings: What does not hold.
        now: The present.
        page: Where people read all that was tried, on the web.
    """
    failing = _digest(sorted({each.expectation for each in findings}))
    first, end = (day.isoformat() for day in days)
    return Notice(
        Kind.CHECK_FAILED,
        (cluster, table, failing, _week(now)),
        CheckFailed(
            cluster=cluster, table=table, from_day=first, to_day=end, findings=list(findings), page=page
        ),
    )


def close_failed(data: CloseFailed, now: dt.datetime) -> Notice:
    """Return the notice of a close that stopped; the same one for a week as long as it stops for the same reason."""
    why = _digest([data.step, data.message, *data.findings])
    return Notice(Kind.CLOSE_FAILED, (data.cluster, data.period, why, _week(now)), data)


def _of_budgets(leaves: Iterable[Spent], thresholds: Sequence[int]) -> Iterator[Notice]:
    for node in by_node(leaves):
        found = reached(node, thresholds)
        for threshold in found:
            yield Notice(
                Kind.BUDGET_THRESHOLD,
                (node.cluster, node.period, node.account, str(threshold)),
                BudgetThreshold(
                    cluster=node.cluster,
                    period=node.period,
                    account=node.account,
                    threshold_percent=threshold,
                    spent_gpu_ms=node.spent_gpu_ms,
                    given_gpu_ms=node.given_gpu_ms,
                ),
                is_overtaken=threshold < found[-1],
            )


def _of_overrun(data: BudgetOverrun) -> Notice:
    return Notice(Kind.BUDGET_OVERRUN, (data.cluster, data.period, data.account), data)


def _of_closes(closes: Iterable[Close], since: dt.datetime) -> Iterator[Notice]:
    for close in closes:
        cluster, period, version = close.cluster, close.period, close.version
        key = (cluster, period, str(version))
        is_undone = close.reopened_at is not None
        if close.sealed_at is not None and close.digest is not None and close.sealed_at >= since:
            sealed = CloseSealed(
                cluster=cluster,
                period=period,
                version=version,
                digest=close.digest,
                sealed_at=iso(close.sealed_at),
            )
            yield Notice(Kind.CLOSE_SEALED, key, sealed, is_overtaken=is_undone)
        if close.reopened_at is not None and close.reopened_at >= since:
            reopened = CloseReopened(
                cluster=cluster, period=period, version=version, reopened_at=iso(close.reopened_at)
            )
            yield Notice(Kind.CLOSE_REOPENED, key, reopened)


def _of_proposal(asked: Asked, now: dt.datetime) -> Iterator[Notice]:
    data, key = asked.data, (asked.data.cluster or "", asked.data.proposal)
    since, is_pending = now - LOOK_BACK, asked.decided_at is None
    is_due = (
        is_pending
        and asked.decide_by is not None
        and asked.decide_by - REMINDED
        < now  # and whoever was given less time than that was told of it at once
        and asked.proposed_at < asked.decide_by - REMINDED
        and asked.decide_by >= since
    )
    if asked.proposed_at >= since:
        yield Notice(Kind.PROPOSAL_MADE, key, data, is_overtaken=is_due or not is_pending)
    if is_due and asked.decide_by is not None:
        due = ProposalDue(
            proposal=data.proposal,
            cluster=data.cluster,
            accounts=data.accounts,
            decide_by=iso(asked.decide_by),
        )
        yield Notice(Kind.PROPOSAL_DUE, key, due)
    if asked.decided_at is not None and asked.decided_at >= since:
        decided = ProposalDecided(
            proposal=data.proposal,
            cluster=data.cluster,
            accounts=data.accounts,
            state=asked.state,
            decided_at=iso(asked.decided_at),
        )
        yield Notice(Kind.PROPOSAL_DECIDED, key, decided)


def _of_week(data: WeeklyDigest) -> Notice:
    return Notice(Kind.DIGEST_WEEKLY, (data.cluster, data.account or "", data.week), data)


def _week(at: dt.datetime) -> str:
    year, week, _ = at.astimezone(dt.UTC).isocalendar()
    return f"{year}-W{week:02d}"


def _digest(texts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()
