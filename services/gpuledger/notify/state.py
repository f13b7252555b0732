"""Read what notices follow from: budgets and forecasts as the last roll-up left them, closes as the books have them."""

import datetime as dt
from collections.abc import Collection, Iterator
from typing import Any

from gpuledger.database.engine import Reader
from gpuledger.kernel.accounts import is_within, own_path
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import iso, seconds
from gpuledger.ledger.close_rows import list_closes
from gpuledger.ledger.proposals import Proposal, proposals
from gpuledger.notify.digest_rows import read_digests
from gpuledger.notify.following import LOOK_BACK, Asked, Close, State
from gpuledger.notify.payloads import AskedShare, AskedTime, BudgetOverrun, ProposalMade
from gpuledger.notify.thresholds import Spent
from gpuledger.warehouse.budgets import budget_rows
from gpuledger.warehouse.forecast_tables import BAND_PERCENT
from gpuledger.warehouse.forecasts import UNSEEN, Foreseen, Overrun, forecasts, funds_gpu_ms, overrun


def read_state(
    reader: Reader, calendar: Calendar, now: dt.datetime, nodes: Collection[str | None] = ()
) -> State:
    """Return what notices follow from now.

    Args:
        reader: A snapshot.
        calendar: The organisation's days and periods.
        now: The present.
        nodes: Accounts whose last week is looked at; None for the organisation.
    """
    periods = calendar.periods_between(seconds(now - LOOK_BACK), seconds(now) + 1)
    budgets: list[Spent] = []
    overruns: list[BudgetOverrun] = []
    for period in periods:
        rows = budget_rows(reader, None, period)
        budgets += map(_spent, rows)
        if period == periods[-1]:
            overruns += _overruns(rows, forecasts(reader, None, period))
    closes = [
        Close(
            each.closing.cluster,
            each.closing.period,
            each.version,
            each.digest,
            each.sealed_at,
            each.reopened_at,
        )
        for each in list_closes(reader)
    ]
    digests = read_digests(reader, calendar, now, nodes)
    return State(budgets, overruns, closes, [_asked(each) for each in proposals(reader)], digests)


def _spent(row: dict[str, Any]) -> Spent:
    # What expires at a period's end would raise the part that was spent to all of it: it was given all the same.
    return Spent(
        row["cluster"],
        row["period"],
        row["account"],
        row["charged_gpu_ms"] - row["credited_gpu_ms"],
        row["budget_gpu_ms"] + row["transferred_gpu_ms"],
    )


def _asked(made: Proposal) -> Asked:
    """Return what a proposal asks for, without names and words, which can be erased and are not kept twice."""
    asked = made.asked
    given = [AskedTime(account=c.account, giver=None, period=c.period, gpu_ms=c.gpu_ms) for c in asked.grants]
    moved = [
        AskedTime(account=c.to, giver=c.account, period=c.period, gpu_ms=c.gpu_ms) for c in asked.transfers
    ]
    data = ProposalMade(
        proposal=asked.proposal,
        cluster=asked.cluster,
        accounts=list(made.accounts),
        shares=[AskedShare(account=change.account, share=change.share) for change in asked.shares],
        times=given + moved,
        effective_at=None if asked.effective_at is None else iso(asked.effective_at),
        decide_by=None if asked.decide_by is None else iso(asked.decide_by),
    )
    decided_at = None if made.decided is None else made.decided.at
    return Asked(data, made.proposed_at, asked.decide_by, made.state.value, decided_at)


def _overruns(
    rows: list[dict[str, Any]], foreseen: dict[tuple[str, str, str], Foreseen]
) -> Iterator[BudgetOverrun]:
    names = {(row["cluster"], row["account"]) for row in rows}
    for row in rows:
        cluster, period, account = row["cluster"], row["period"], row["account"]
        found, funds = foreseen.get((cluster, period, account), UNSEEN), funds_gpu_ms(row)
        if overrun(found, funds) is not Overrun.EXPECTED or found.as_of is None:
            continue
        is_inner = any(c == cluster and a != account and is_within(a, account) for c, a in names)
        yield BudgetOverrun(
            cluster=cluster,
            period=period,
            account=own_path(account) if is_inner else account,
            funds_gpu_ms=funds or 0,
            forecast_gpu_ms=found.forecast_gpu_ms or 0,
            low_gpu_ms=found.low_gpu_ms or 0,
            high_gpu_ms=found.high_gpu_ms or 0,
            band_percent=BAND_PERCENT,
            as_of=iso(found.as_of),
        )
