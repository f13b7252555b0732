"""What people and the book itself ordered, kept beside the journal and rebuilt from it at will.

Accounts, shares, overdraft, the organisation's zone, the life of periods, and the lots that make up a budget.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from psycopg import Connection

from gpuledger.database.engine import Writer
from gpuledger.events import budget, closing
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.events.registry import Fact
from gpuledger.kernel.accounts import owner_of
from gpuledger.kernel.amounts import WEIGHT_ONE
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant, seconds
from gpuledger.ledger.copying import copy_rows, driver
from gpuledger.ledger.projections import Journalled

LOT_COLUMNS = (
    "book", "account", "period", "name", "priority", "expires_on", "created_seq", "amount", "rollover",
)  # fmt: skip


class Given(NamedTuple):
    """A lot as an order gives it; the amount is weighted."""

    account: str
    period: str
    name: str
    priority: int | None
    expires_on: dt.date | None
    created_seq: int
    amount: int
    rollover: str | None


def write_orders(writer: Writer, book: str, facts: Sequence[Journalled], calendar: Calendar) -> None:
    """Bring up to date what the orders of a batch change."""
    connection = driver(writer)
    for item in facts:
        _write_organisation(connection, book, item)
        _write_period(connection, book, item)
    given = [(book, *lot) for seq, _, fact in facts for lot in lots_of(fact, seq, calendar)]
    if given:
        copy_rows(writer, "ledger.lots", LOT_COLUMNS, given)


def _write_organisation(connection: "Connection[tuple[object, ...]]", book: str, item: Journalled) -> None:
    seq, at_s, fact = item
    match fact:
        case budget.AccountCreated() if book == ORG_BOOK:
            connection.execute(
                "INSERT INTO ledger.accounts (account, path, created_seq) VALUES (%s, %s, %s)"
                " ON CONFLICT (account) DO NOTHING",
                (fact.account, fact.account, seq),
            )
        case budget.ShareSet():
            connection.execute(
                "INSERT INTO ledger.shares (account, from_at, share, set_seq) VALUES (%s, %s, %s, %s)",
                (fact.account, instant(at_s), fact.share, seq),
            )
        case budget.OverdraftSet():
            connection.execute(
                "INSERT INTO ledger.overdrafts (account, from_at, overdraft, set_seq) VALUES (%s, %s, %s, %s)",
                (fact.account, instant(at_s), fact.overdraft, seq),
            )
        case budget.PolicyChanged(policy="organisation"):
            connection.execute(
                "INSERT INTO ledger.organisation (set_seq, timezone, period) VALUES (%s, %s, %s)",
                (seq, fact.timezone, fact.period),
            )


def _write_period(connection: "Connection[tuple[object, ...]]", book: str, item: Journalled) -> None:
    seq, _, fact = item
    match fact:
        case budget.PeriodOpened():
            connection.execute(
                "INSERT INTO ledger.periods AS p (book, period, opened_seq, installed_gpu_ms)"
                " VALUES (%s, %s, %s, %s) ON CONFLICT (book, period) DO UPDATE"
                " SET opened_seq = excluded.opened_seq, installed_gpu_ms = excluded.installed_gpu_ms"
                " WHERE p.opened_seq IS NULL",
                (book, fact.period, seq, fact.installed_gpu_ms),
            )
        case closing.PeriodClosing():
            connection.execute(
                "INSERT INTO ledger.periods (book, period, state, version, closing_seq)"
                " VALUES (%s, %s, 'closing', %s, %s) ON CONFLICT (book, period) DO UPDATE"
                " SET state = excluded.state, version = excluded.version, closing_seq = excluded.closing_seq",
                (book, fact.period, fact.version, seq),
            )
        case closing.PeriodClosed():
            connection.execute(
                "UPDATE ledger.periods SET state = 'closed', closed_seq = %s WHERE book = %s AND period = %s",
                (seq, book, fact.period),
            )
        case closing.PeriodReopened():
            connection.execute(
                "UPDATE ledger.periods SET state = 'open', closed_seq = NULL WHERE book = %s AND period = %s",
                (book, fact.period),
            )


def lots_of(fact: Fact, seq: int, calendar: Calendar) -> Iterator[Given]:
    """Yield the lots that an order gives, to the account and period that it names."""
    match fact:
        case budget.Granted(limit=False) if fact.gpu_ms:
            expires_on = first_day_after(seconds(fact.expires_at), calendar) if fact.expires_at else None
            amount = fact.gpu_ms * WEIGHT_ONE
            yield Given(
                owner_of(fact.account),
                fact.period,
                f"grant/{seq}",
                fact.priority,
                expires_on,
                seq,
                amount,
                fact.rollover,
            )
        case budget.PeriodOpened():
            for grant in fact.grants:
                if grant.gpu_ms:
                    amount = grant.gpu_ms * WEIGHT_ONE
                    yield Given(
                        owner_of(grant.account), fact.period, f"opening/{seq}", None, None, seq, amount, None
                    )
        case budget.Transferred():
            amount = fact.gpu_ms * WEIGHT_ONE
            yield Given(owner_of(fact.to), fact.period, f"transfer/{seq}", None, None, seq, amount, None)
        case budget.AdjustmentPosted(code="grant", limit=False) if fact.gpu_ms > 0:
            amount = fact.gpu_ms * WEIGHT_ONE
            yield Given(
                owner_of(fact.account), fact.period, f"adjustment/{seq}", None, None, seq, amount, None
            )


def first_day_after(at_s: int, calendar: Calendar) -> dt.date:
    """Return the first whole day from an instant on: what expires within a day is there until it ends."""
    day = calendar.day_of(at_s)
    return day if calendar.day_start_s(day) == at_s else day + dt.timedelta(days=1)


def day_of(period: str, at_s: int, calendar: Calendar) -> dt.date:
    """Return the day on which an order about a period takes effect that is given at an instant: one of its own."""
    start_s, end_s = calendar.period_bounds_s(period)
    return calendar.day_of(min(max(at_s, start_s), end_s - 1))


def rows(
    book: str, facts: Sequence[Journalled], calendar: Calendar
) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield (kind, row) of what the orders of a book must have left, carried lots aside; for comparisons."""
    accounts: dict[str, tuple[object, ...]] = {}
    periods: dict[str, _Period] = {}
    for seq, at_s, fact in facts:
        match fact:
            case budget.AccountCreated() if book == ORG_BOOK:
                accounts.setdefault(fact.account, (fact.account, fact.account, seq))
            case budget.ShareSet():
                yield "share", (fact.account, instant(at_s), fact.share, seq)
            case budget.OverdraftSet():
                yield "overdraft", (fact.account, instant(at_s), fact.overdraft, seq)
            case budget.PolicyChanged(policy="organisation"):
                yield "organisation", (seq, fact.timezone, fact.period)
        if (period := getattr(fact, "period", None)) is not None:
            state = _lived(periods.get(period), fact, seq)
            if state is not None:
                periods[period] = state
        yield from (("lot", (book, *lot)) for lot in lots_of(fact, seq, calendar))
    yield from (("account", row) for row in accounts.values())
    yield from (("period", (book, period, *state)) for period, state in periods.items())


class _Period(NamedTuple):
    """What the orders say of a period, in the order of the columns."""

    opened_seq: int | None = None
    installed_gpu_ms: int | None = None
    state: str = "open"
    version: int = 0
    closing_seq: int | None = None
    closed_seq: int | None = None


def _lived(before: _Period | None, fact: Fact, seq: int) -> _Period | None:
    """Return where a period stands after an order, or None when it is none about periods."""
    state = before or _Period()
    match fact:
        case budget.PeriodOpened():
            if state.opened_seq is None:
                return state._replace(opened_seq=seq, installed_gpu_ms=fact.installed_gpu_ms)
            return state
        case closing.PeriodClosing():
            return state._replace(state="closing", version=fact.version, closing_seq=seq)
        case closing.PeriodClosed():
            return state._replace(state="closed", closed_seq=seq)
        case closing.PeriodReopened():
            return state._replace(state="open", closed_seq=None)
    return None
