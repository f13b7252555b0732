"""What a notice says to people: a subject, a sentence, and the facts. Pure; templates only lay it out."""

import datetime as dt
from collections.abc import Iterator
from typing import assert_never

from gpuledger.kernel.amounts import people_gpu_hours
from gpuledger.notify.digests import digest_text
from gpuledger.notify.payloads import (
    BudgetOverrun,
    BudgetThreshold,
    CheckFailed,
    CloseFailed,
    CloseReopened,
    CloseSealed,
    Data,
    Finding,
    ProposalDecided,
    ProposalDue,
    ProposalMade,
    Trial,
    WeeklyDigest,
)
from gpuledger.notify.words import Table, Text

_ALL = 100


def text_of(data: Data) -> Text:
    """Return a notice in words."""
    match data:
        case BudgetThreshold():
            return _threshold(data)
        case BudgetOverrun():
            return _overrun(data)
        case CheckFailed():
            return _check(data)
        case CloseSealed() | CloseReopened() | CloseFailed():
            return _close(data)
        case ProposalMade() | ProposalDue() | ProposalDecided():
            return _proposal(data)
        case WeeklyDigest():
            return digest_text(data)
        case Trial():
            return Text("A test of notifications", f"{data.by} tries whether notices of gpuledger arrive.")
        case _:
            raise TypeError(f"{type(data).__name__} has no words")


def _threshold(data: BudgetThreshold) -> Text:
    spent, given = people_gpu_hours(data.spent_gpu_ms), people_gpu_hours(data.given_gpu_ms)
    left = data.given_gpu_ms - data.spent_gpu_ms
    is_over = data.threshold_percent >= _ALL
    return Text(
        subject=f"{data.account}: {data.threshold_percent} % of the budget of {data.period} is spent",
        lead=f"{data.account} has spent {spent} of the {given} GPU-hours that it was given on {data.cluster} for"
        f" {data.period}.",
        facts=(
            ("Account", data.account),
            ("Cluster", data.cluster),
            ("Period", data.period),
            ("Spent", f"{spent} GPU-hours, {data.spent_gpu_ms * _ALL // data.given_gpu_ms} %"),
            ("Given", f"{given} GPU-hours"),
            ("Left", f"{people_gpu_hours(left)} GPU-hours"),
        ),
        advice=(
            "More protected work counts against the budgets to come, or is refused where the account is a hard one;"
            " work without a minimum runtime stays free. gpuledger proposal asks for more."
            if is_over
            else f"gpuledger movements {data.account} lists what moved it."
        ),
    )


def _overrun(data: BudgetOverrun) -> Text:
    forecast, funds = people_gpu_hours(data.forecast_gpu_ms), people_gpu_hours(data.funds_gpu_ms)
    band = f"{people_gpu_hours(data.low_gpu_ms)} to {people_gpu_hours(data.high_gpu_ms)} GPU-hours"
    return Text(
        subject=f"{data.account}: the budget of {data.period} is expected not to last",
        lead=f"If the rest of {data.period} is like the past, {data.account} will be delivered {forecast} GPU-hours on"
        f" {data.cluster}, and its budget funds {funds}.",
        facts=(
            ("Account", data.account),
            ("Cluster", data.cluster),
            ("Period", data.period),
            ("Forecast", f"{forecast} GPU-hours"),
            (f"Band of {data.band_percent} %", band),
            ("Funded", f"{funds} GPU-hours"),
            ("As of", data.as_of),
        ),
        advice="gpuledger budget report shows the forecast; gpuledger proposal asks for another budget.",
    )


def _check(data: CheckFailed) -> Text:
    last = dt.date.fromisoformat(data.to_day) - dt.timedelta(days=1)
    return Text(
        subject=f"{data.cluster}: a check of warehouse.{data.table} failed",
        lead=f"The roll-up of {data.cluster} from {data.from_day} to {last} left rows in warehouse.{data.table} that"
        " are not as they must be. What is computed from them was not computed.",
        facts=(
            ("Cluster", data.cluster),
            ("Table", f"warehouse.{data.table}"),
            ("Days (UTC)", f"{data.from_day} to {last}"),
            *((("All that was tried", data.page),) if data.page else ()),
        ),
        tables=tuple(map(_table, data.findings)),
        advice="gpuledger rollup tries again; gpuledger audit verify says whether the ledger itself holds.",
    )


def _table(finding: Finding) -> Table:
    columns = tuple(finding.rows[0]) if finding.rows else ()
    more = (finding.rows_count or 0) - len(finding.rows)
    note = f" ({finding.rows_count} rows, {more} of them not shown)" if more > 0 else ""
    rows = tuple(tuple(row.get(name, "") for name in columns) for row in finding.rows)
    return Table(finding.expectation + note, columns, rows)


def _close(data: CloseSealed | CloseReopened | CloseFailed) -> Text:
    facts = (("Cluster", data.cluster), ("Period", data.period))
    where = f"--cluster {data.cluster}"
    match data:
        case CloseSealed():
            return Text(
                subject=f"{data.period} of {data.cluster} is closed",
                lead=f"Version {data.version} of the close of {data.period} of {data.cluster} is sealed. Facts that"
                " come later are booked in the open period.",
                facts=(
                    *facts,
                    ("Version", str(data.version)),
                    ("Sealed", data.sealed_at),
                    ("SHA-256", data.digest),
                ),
                advice=f"gpuledger close verify {data.period} {where} proves it from the journal.",
            )
        case CloseReopened():
            return Text(
                subject=f"{data.period} of {data.cluster} is open again",
                lead=f"Version {data.version} of the close of {data.period} of {data.cluster} no longer holds: the"
                " period takes bookings again.",
                facts=(*facts, ("Version", str(data.version)), ("Reopened", data.reopened_at)),
                advice=f"gpuledger close diff {data.period} {where} explains the difference once it is closed again.",
            )
        case CloseFailed():
            found = Table("What was found", ("finding",), tuple((each,) for each in data.findings))
            return Text(
                subject=f"The close of {data.period} of {data.cluster} stopped",
                lead=f"The close of {data.period} of {data.cluster} stopped at the step {data.step} and sealed nothing:"
                f" {data.message}.",
                facts=(*facts, ("Step", data.step)),
                tables=(found,) if data.findings else (),
                advice=f"gpuledger close run {data.period} {where} goes on from there.",
            )
        case never:
            assert_never(never)


def _proposal(data: ProposalMade | ProposalDue | ProposalDecided) -> Text:
    whose = ", ".join(data.accounts)
    facts = (("Proposal", data.proposal), ("Accounts", whose), ("Cluster", data.cluster or "all"))
    advice = f"gpuledger proposal show {data.proposal} tells who asks, why, and what it would change."
    match data:
        case ProposalMade():
            due = data.decide_by or "no day is set"
            return Text(
                subject=f"Somebody proposes another budget for {whose}",
                lead=f"The proposal {data.proposal} asks for a change, and waits for an answer.",
                facts=(
                    *facts,
                    ("Answer due", due),
                    ("In force", data.effective_at or "from the approval on"),
                ),
                tables=tuple(_asked(data)),
                advice=advice,
            )
        case ProposalDue():
            return Text(
                subject=f"An answer to {data.proposal} is due",
                lead=f"Nobody has answered the proposal {data.proposal}; an answer is due {data.decide_by}.",
                facts=(*facts, ("Answer due", data.decide_by)),
                advice=advice,
            )
        case ProposalDecided():
            return Text(
                subject=f"{data.proposal} was {data.state}",
                lead=f"The proposal {data.proposal} for {whose} was {data.state}.",
                facts=(*facts, ("Decided", data.decided_at)),
                advice=advice,
            )
        case never:
            assert_never(never)


def _asked(data: ProposalMade) -> Iterator[Table]:
    if data.shares:
        rows = tuple((each.account, str(each.share)) for each in data.shares)
        yield Table("Shares, as they would be", ("account", "share"), rows)
    if data.times:
        yield Table(
            "GPU-time that would be given",
            ("account", "from", "period", "GPU-hours"),
            tuple(
                (each.account, each.giver or "a new grant", each.period, people_gpu_hours(each.gpu_ms))
                for each in data.times
            ),
        )
