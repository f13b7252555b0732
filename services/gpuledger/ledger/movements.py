"""What moved a balance between two recorded times: the rows that explain their difference (law 6).

The balance as of the later time is the balance as of the earlier one plus these, to the unit, apart from what runs that
go on add on reading. A limit moves no budget, but bounds what may be spent of it: the rows that changed the limits of
an account and of those above it are told apart.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpuledger.database.engine import Reader
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.kernel.accounts import lineage, own_path, owner_of
from gpuledger.kernel.amounts import WEIGHT_ONE, gpu_hours
from gpuledger.kernel.clock import iso
from gpuledger.kernel.errors import Refused
from gpuledger.ledger import queries
from gpuledger.ledger.as_of import seq_of, vector_of
from gpuledger.ledger.charges import WEIGHTED
from gpuledger.ledger.copying import driver

SHOWN_MAX = 10_000
"""The most rows that one answer holds: a part of them would not explain the difference."""


@dataclass(frozen=True, slots=True)
class Movement:
    """One posting that moved what an account may spend.

    Args:
        seq: The journal row that caused it.
        recorded_at: When the book took that row.
        type: What the row is.
        code: The movement, such as ``charge`` or ``expiry``.
        period: The period it was booked into.
        effective_on: The organisation's day it belongs to.
        amount: What it adds to the account's available balance, in gpu_ms x per mille; below zero it takes.
        reverses_seq: The row whose posting it corrects, if any.
    """

    seq: int
    recorded_at: dt.datetime
    type: str
    code: str
    account: str
    period: str
    effective_on: dt.date
    workload: str | None
    run: str | None
    amount: int
    reverses_seq: int | None
    reason: str | None

    @property
    def gpu_ms(self) -> int:
        """The amount as people read it, rounded down."""
        return self.amount // WEIGHT_ONE

    def as_json(self) -> dict[str, Any]:
        """Return the movement under its published keys."""
        return {
            "seq": self.seq,
            "recorded_at": iso(self.recorded_at),
            "type": self.type,
            "code": self.code,
            "account": self.account,
            "period": self.period,
            "effective_on": self.effective_on.isoformat(),
            "workload": self.workload,
            "run": self.run,
            "gpu_ms": self.gpu_ms,
            "gpu_ms_weighted": self.amount,
            "gpu_hours": str(gpu_hours(self.gpu_ms)),
            "reverses_seq": self.reverses_seq,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class LimitMoved:
    """One row that raised or lowered a limit.

    Args:
        seq: The journal row.
        recorded_at: When the book took it.
        type: What the row is: a grant on an inner account, or an adjustment of one.
        account: The inner account whose subtree it limits.
        period: The budget period.
        gpu_ms: What it adds to the limit; below zero it takes.
    """

    seq: int
    recorded_at: dt.datetime
    type: str
    account: str
    period: str
    gpu_ms: int

    def as_json(self) -> dict[str, Any]:
        """Return the row under its published keys."""
        return {
            "seq": self.seq,
            "recorded_at": iso(self.recorded_at),
            "type": self.type,
            "account": self.account,
            "period": self.period,
            "gpu_ms": self.gpu_ms,
            "gpu_hours": str(gpu_hours(self.gpu_ms)),
        }


def movements(
    reader: Reader,
    account: str,
    cluster: str,
    *,
    period: str | None = None,
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
) -> Sequence[Movement]:
    """Return what moved the budget of an account, or of the leaves below it, in the order in which it was booked.

    What drains a hold moves nothing: it was taken from the budget when it was set aside.

    Args:
        reader: A snapshot.
        account: A leaf, or an inner account; ``org/~own`` is what ``org`` owns itself.
        cluster: The book.
        period: Only what was booked into this period.
        since: Recorded after this; from the beginning unless given.
        until: Recorded at or before this; up to now unless given.

    Raises:
        NotFound: When the account or the cluster does not exist.
        Refused: When there are more than ``SHOWN_MAX``.
    """
    queries.require_cluster(reader, cluster)
    queries.require_account(reader, account)
    rows = driver(reader).execute(
        """
        SELECT p.seq, p.recorded_at, j.type, p.code, leg.account, leg.period, p.effective_on, p.workload, p.run,
               leg.sign * p.amount, p.reverses_seq, p.reason
        FROM ledger.postings AS p
        CROSS JOIN LATERAL (VALUES (p.debit_pot, p.debit_account, p.debit_period, -1),
                                   (p.credit_pot, p.credit_account, p.credit_period, 1))
            AS leg (pot, account, period, sign)
        JOIN ledger.journal AS j ON j.book = p.book AND j.seq = p.seq AND j.recorded_at = p.recorded_at
        WHERE p.book = %(book)s AND p.commodity = %(commodity)s AND leg.pot = 'budget'
          AND (leg.account = %(owner)s OR starts_with(leg.account, %(account)s || '/'))
          AND (%(period)s::text IS NULL OR leg.period = %(period)s)
          AND p.recorded_at > coalesce(%(since)s, '-infinity'::timestamptz)
          AND p.recorded_at <= coalesce(%(until)s, 'infinity'::timestamptz)
        ORDER BY p.seq, p.n LIMIT %(most)s
        """,
        {
            "book": cluster, "commodity": WEIGHTED, "account": account, "owner": owner_of(account), "period": period,
            "since": since, "until": until, "most": SHOWN_MAX + 1,
        },
    )  # fmt: skip
    found = [Movement(*row) for row in rows.fetchall()]
    if len(found) > SHOWN_MAX:
        raise Refused(
            f"more than {SHOWN_MAX} rows moved {account} on {cluster}: a part of them would not explain the difference",
            hint="ask for a shorter time, for one period, or for an account further down",
        )
    inner = queries.inner_accounts(reader, seq_of(vector_of(reader, until), ORG_BOOK))
    return [replace(m, account=own_path(m.account)) if m.account in inner else m for m in found]


def limits_moved(
    reader: Reader,
    account: str,
    cluster: str,
    *,
    period: str | None = None,
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
) -> Sequence[LimitMoved]:
    """Return what changed the limits of an account and of those above it, in the order of the book.

    Who they bind has as much less, or more, to spend, though its budget stays. What others below one of them spend
    leaves less too: the movements of that account show it.

    Args:
        reader: A snapshot.
        account: The account whose limits, and those of all above it, are asked for.
        cluster: The book.
        period: Only limits of this period.
        since: Recorded after this; from the beginning unless given.
        until: Recorded at or before this; up to now unless given.
    """
    rows = driver(reader).execute(
        """
        SELECT seq, recorded_at, type, body->>'account', body->>'period', (body->>'gpu_ms')::bigint
        FROM ledger.journal
        WHERE book = %(book)s AND workload IS NULL AND type IN ('budget.granted', 'adjustment.posted')
          AND (body->>'limit')::boolean AND body->>'account' = ANY(%(path)s)
          AND (%(period)s::text IS NULL OR body->>'period' = %(period)s)
          AND recorded_at > coalesce(%(since)s, '-infinity'::timestamptz)
          AND recorded_at <= coalesce(%(until)s, 'infinity'::timestamptz)
        ORDER BY seq
        """,
        {"book": cluster, "path": list(lineage(account)), "period": period, "since": since, "until": until},
    )
    return [LimitMoved(*row) for row in rows.fetchall()]
