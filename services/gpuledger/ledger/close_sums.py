"""What was booked into a period, by account, as one version of its close sealed it."""

from itertools import groupby

from gpuledger.database.engine import Reader, Writer
from gpuledger.ledger.booked import Crossing, Moved, Sum
from gpuledger.ledger.charges import WEIGHTED
from gpuledger.ledger.close_rows import CloseRows
from gpuledger.ledger.copying import driver
from gpuledger.ledger.store import EFFECTIVE_PERIOD, LEGS

_END = 2**63 - 1


def sums(connection: Reader | Writer, cluster: str, period: str, close: CloseRows) -> list[Sum]:
    """Return what was booked into a period up to a close, its settlement included.

    Nothing is booked into a period that is shut, so that all that stands of it before a reopening is the close's.
    """
    rows = driver(connection).execute(
        f"""
        SELECT account, belongs_to, commodity, pot, code, sum(amount)::bigint AS amount
        FROM (SELECT *, {EFFECTIVE_PERIOD} AS belongs_to FROM ({LEGS}) AS legs
              WHERE book = %s AND period = %s AND seq < %s) AS booked
        GROUP BY 1, 2, 3, 4, 5 HAVING sum(amount) <> 0
        ORDER BY account COLLATE "C", belongs_to, commodity, pot, code
        """,
        (cluster, period, close.reopened_seq or _END),
    )
    return [Sum(*row) for row in rows]


def crossings(connection: Reader | Writer, cluster: str, period: str, close: CloseRows) -> list[Crossing]:
    """Return what moved between the period and others up to a close, in weighted units, by code."""
    rows = driver(connection).execute(
        """
        SELECT code, sum(CASE WHEN credit_period = %(period)s THEN amount ELSE -amount END)::bigint
        FROM ledger.postings
        WHERE book = %(book)s AND seq < %(before)s AND commodity = 'gpu_ms_weighted' AND debit_period <> credit_period
          AND (debit_period = %(period)s OR credit_period = %(period)s)
        GROUP BY code ORDER BY code
        """,
        {"book": cluster, "period": period, "before": close.reopened_seq or _END},
    )
    return [Crossing(*row) for row in rows]


def moved(
    connection: Reader | Writer, cluster: str, period: str, from_seq: int, before_seq: int | None
) -> list[Moved]:
    """Return the journal rows that moved anything in a period, each with what it moved, in sequence.

    Args:
        connection: A transaction.
        cluster: The cluster, which is also the book.
        period: The budget period.
        from_seq: The first row that is looked at.
        before_seq: The row before which to stop; None for all.
    """
    rows = driver(connection).execute(
        f"""
        SELECT j.seq, j.recorded_at, j.effective_at, j.type, j.source, j.event_id, j.workload, m.account, m.belongs_to,
               m.commodity, m.pot, m.code, m.amount
        FROM ledger.journal AS j JOIN (
            SELECT seq, account, belongs_to, commodity, pot, code, sum(amount)::bigint AS amount
            FROM (SELECT *, {EFFECTIVE_PERIOD} AS belongs_to FROM ({LEGS}) AS legs
                  WHERE book = %(book)s AND period = %(period)s AND seq >= %(from)s AND seq < %(before)s) AS booked
            GROUP BY 1, 2, 3, 4, 5, 6 HAVING sum(amount) <> 0) AS m USING (seq)
        WHERE j.book = %(book)s
        ORDER BY j.seq, m.account COLLATE "C", m.commodity, m.pot, m.code
        """,
        {"book": cluster, "period": period, "from": from_seq, "before": before_seq or _END},
    )
    found = []
    for _, group in groupby(rows.fetchall(), key=lambda row: row[0]):
        told = list(group)
        seq, recorded_at, effective_at, type_, source, event_id, workload = told[0][:7]
        sums_ = tuple(Sum(*row[7:]) for row in told)
        found.append(Moved(seq, recorded_at, effective_at, type_, source, event_id, workload, sums_))
    return found


def budgeted_periods(connection: Reader | Writer, cluster: str) -> list[str]:
    """Return the periods of a cluster into whose budgets anything was booked, in order."""
    rows = driver(connection).execute(
        "SELECT DISTINCT period FROM ledger.balances WHERE book = %s AND pot = 'budget' AND commodity = %s"
        " ORDER BY period",
        (cluster, WEIGHTED),
    )
    return [period for (period,) in rows]
