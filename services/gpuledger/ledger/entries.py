"""Every entry of a book, one side of a posting each, streamed: the whole of a ledger fits in nobody's memory."""

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gpuledger.database.engine import Reader
from gpuledger.kernel.accounts import SEPARATOR
from gpuledger.ledger import queries
from gpuledger.ledger.as_of import seq_of, vector_of
from gpuledger.ledger.copying import driver

BATCH_ROWS = 2000
"""How many rows are held at once."""


class Entry(NamedTuple):
    """One side of a posting.

    Args:
        amount: In the units of its commodity; below zero it leaves the pot.
        commodity: ``gpu_ms`` (physical) or ``gpu_ms_weighted`` (gpu_ms x per mille).
        reverses_seq: The row whose posting it corrects, if any.
    """

    book: str
    seq: int
    recorded_at: dt.datetime
    code: str
    commodity: str
    pot: str
    account: str
    period: str
    effective_on: dt.date
    workload: str | None
    run: str | None
    amount: int
    reverses_seq: int | None
    reason: str | None


def iter_entries(
    reader: Reader,
    cluster: str,
    *,
    period: str | None = None,
    within: str | None = None,
    as_of: dt.datetime | None = None,
) -> Iterator[Sequence[Entry]]:
    """Stream the entries of a book in its order, in batches.

    Args:
        reader: A snapshot that stays open until the last batch was taken.
        cluster: The book.
        period: Only what was booked into this period; all of it unless given.
        within: An account: only entries of it and of what lies below; all of them unless given.
        as_of: What the book said at this recorded time; now unless given.

    Raises:
        NotFound: When the cluster has no book.
    """
    queries.require_cluster(reader, cluster)
    values = {
        "book": cluster, "period": period, "within": within, "below": (within or "") + SEPARATOR,
        "seq": seq_of(vector_of(reader, as_of), cluster),
    }  # fmt: skip
    with driver(reader).cursor(name="entries") as cursor:  # named: the rows stay on the server
        cursor.execute(
            """
            SELECT p.book, p.seq, p.recorded_at, p.code, p.commodity, leg.pot, leg.account, leg.period,
                   p.effective_on, p.workload, p.run, leg.sign * p.amount, p.reverses_seq, p.reason
            FROM ledger.postings AS p
            CROSS JOIN LATERAL (VALUES (p.debit_pot, p.debit_account, p.debit_period, -1),
                                       (p.credit_pot, p.credit_account, p.credit_period, 1))
                AS leg (pot, account, period, sign)
            WHERE p.book = %(book)s AND (%(seq)s::bigint IS NULL OR p.seq <= %(seq)s)
              AND (%(period)s::text IS NULL OR leg.period = %(period)s)
              AND (%(within)s::text IS NULL OR leg.account = %(within)s OR starts_with(leg.account, %(below)s))
            ORDER BY p.seq, p.n, leg.sign
            """,
            values,
        )
        while rows := cursor.fetchmany(BATCH_ROWS):
            yield [Entry(*row) for row in rows]
