"""What accounts used and what stands of it, by day: sums that each batch moves on by what it posts.

They are a projection of the postings, for whoever looks at an account again and again: what is posted back of
adjustments, and what of its lots is gone. To read what an account was charged in a month, posting by posting, takes as
long as the month is busy. The day is the one that a movement belongs to, whenever it was booked; amounts are weighted.
"""

import datetime as dt
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.ledger.charges import (
    CHARGE,
    CREDIT,
    EXPIRY,
    GRANT,
    ROLLOVER,
    SETTLED,
    TRANSFER,
    UNALLOCATED,
    WEIGHTED,
    Moved,
)
from gpuledger.ledger.copying import driver


class Sums(NamedTuple):
    """What an account has of a day.

    Args:
        used: What left its budget, other than by expiry and rollover, less what came back. Lots are what came in:
            grants and transfers received are none of it.
        charged: What stands charged, without what was posted back of adjustments, as in the others.
        credited: What stands credited.
        unallocated: What stands as unallocated use.
    """

    used: int = 0
    charged: int = 0
    credited: int = 0
    unallocated: int = 0

    def plus(self, other: "Sums") -> "Sums":
        """Return both together."""
        return Sums(*(a + b for a, b in zip(self, other, strict=True)))


Dated = tuple[str, dt.date]
"""An account and a day."""

STORED = "SELECT book, account, day, used, charged, credited, unallocated FROM ledger.day_sums"

_STANDS = (CHARGE, "spent"), (CREDIT, "credited"), (UNALLOCATED, "unallocated")


def _posted(of: str) -> str:
    """Return the query of the same sums; conditions may follow, and the grouping by the first three columns.

    Args:
        of: What gives the postings.
    """
    return f"""
    SELECT p.book, leg.account, p.effective_on AS day, coalesce(-sum(leg.amount) FILTER (WHERE leg.is_used), 0)::bigint,
           coalesce(sum(leg.amount) FILTER (WHERE leg.stands = '{CHARGE}'), 0)::bigint,
           coalesce(sum(leg.amount) FILTER (WHERE leg.stands = '{CREDIT}'), 0)::bigint,
           coalesce(sum(leg.amount) FILTER (WHERE leg.stands = '{UNALLOCATED}'), 0)::bigint
    FROM {of} AS p CROSS JOIN LATERAL (
        SELECT account, period, amount,
               pot = 'budget' AND p.code NOT IN ('{EXPIRY}', '{ROLLOVER}')
               AND (amount < 0 AND (p.code <> '{GRANT}' OR p.reason IS DISTINCT FROM '{SETTLED}')
                    OR p.code NOT IN ('{GRANT}', '{TRANSFER}')) AS is_used,
               CASE WHEN (p.code, pot) IN {_STANDS} AND p.reason IS DISTINCT FROM '{SETTLED}' THEN p.code END AS stands
        FROM (VALUES (p.debit_pot, p.debit_account, p.debit_period, -p.amount),
                     (p.credit_pot, p.credit_account, p.credit_period, p.amount))
            AS side (pot, account, period, amount)) AS leg
    WHERE p.commodity = '{WEIGHTED}' AND (leg.is_used OR leg.stands IS NOT NULL)
"""


POSTED = _posted("ledger.postings")
"""The sums of all that was posted."""


def sums(moved: Moved) -> dict[Dated, Sums]:
    """Return what was moved as sums of the days of accounts. Pure."""
    found: dict[Dated, list[int]] = {}
    for (code, commodity, debit, credit, day, reason), amount in moved.items():
        if commodity == WEIGHTED:
            for side, delta in ((debit, -amount), (credit, amount)):
                for place, added in _parts(code, side.pot, delta, is_settled=reason == SETTLED):
                    found.setdefault((side.account, day), [0, 0, 0, 0])[place] += added
    return {of: Sums(*own) for of, own in found.items()}


def _parts(code: str, pot: str, amount: int, *, is_settled: bool) -> Iterator[tuple[int, int]]:
    """Yield what one side of a movement adds: the place among the sums, and how much."""
    if pot == "budget" and code not in (EXPIRY, ROLLOVER):
        is_taken = amount < 0 and not (code == GRANT and is_settled)
        if is_taken or code not in (GRANT, TRANSFER):
            yield 0, -amount
    if not is_settled and (code, pot) in _STANDS:
        yield 1 + _STANDS.index((code, pot)), amount


def add(writer: Writer, book: str, moved: Moved) -> None:
    """Add what was moved to the days that it belongs to, in order of their keys: no two writers wait in a circle."""
    rows = [(*of, *own) for of, own in sorted(sums(moved).items())]
    if rows:
        driver(writer).execute(
            "INSERT INTO ledger.day_sums AS s (book, account, day, used, charged, credited, unallocated)"
            " SELECT %s, * FROM unnest(%s::text[], %s::date[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[])"
            " ON CONFLICT (book, account, day) DO UPDATE SET used = s.used + excluded.used,"
            " charged = s.charged + excluded.charged, credited = s.credited + excluded.credited,"
            " unallocated = s.unallocated + excluded.unallocated",
            (book, *map(list, zip(*rows, strict=True))),
        )


def read(
    connection: Reader | Writer,
    book: str,
    accounts: Collection[str],
    first_on: dt.date,
    last_on: dt.date = dt.date.max,
) -> dict[Dated, Sums]:
    """Return the sums of accounts from a day on, up to another, both included."""
    rows = driver(connection).execute(
        f"{STORED} WHERE book = %s AND account = ANY(%s) AND day BETWEEN %s AND %s",
        (book, sorted(accounts), first_on, last_on),
    )
    return {(account, day): Sums(*own) for _, account, day, *own in rows}


def read_anew(
    connection: Reader | Writer,
    book: str,
    accounts: Collection[str],
    first_on: dt.date,
    last_on: dt.date = dt.date.max,
    *,
    as_of_seq: int | None = None,
    booked_in: str | None = None,
) -> dict[Dated, Sums]:
    """Return what ``read`` does from the postings themselves: those up to a row, or booked into one period, or all."""
    rows = driver(connection).execute(
        f"{POSTED} AND p.book = %(book)s AND p.effective_on BETWEEN %(first)s AND %(last)s"
        " AND leg.account = ANY(%(accounts)s) AND (%(seq)s::bigint IS NULL OR p.seq <= %(seq)s)"
        " AND (%(booked_in)s::text IS NULL OR leg.period = %(booked_in)s) GROUP BY 1, 2, 3",
        {
            "book": book,
            "accounts": sorted(accounts),
            "first": first_on,
            "last": last_on,
            "seq": as_of_seq,
            "booked_in": booked_in,
        },
    )
    return {(account, day): Sums(*own) for _, account, day, *own in rows}


def from_postings(of: str) -> str:
    """Return the statement that makes the sums of every day; there are none before.

    Args:
        of: What gives the postings; those that are alike may be one.
    """
    return (
        "INSERT INTO ledger.day_sums (book, account, day, used, charged, credited, unallocated)"
        f" {_posted(of)} GROUP BY 1, 2, 3"
    )


def rows(reader: Reader) -> Sequence[Sequence[object]]:
    """Return the rows that must stand; for comparisons."""
    return driver(reader).execute(f"{POSTED} GROUP BY 1, 2, 3").fetchall()
