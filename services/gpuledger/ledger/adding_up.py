"""Balances and sums by day, made from the postings in one walk through them: what a rebuild begins with."""

from gpuledger.database.engine import Writer
from gpuledger.ledger import days
from gpuledger.ledger.charges import HOLD, RELEASE, SETTLED
from gpuledger.ledger.copying import driver

_ADDED_UP = f"""
    WITH alike AS MATERIALIZED (
        SELECT book, effective_on, code, commodity, CASE WHEN reason = '{SETTLED}' THEN reason END AS reason,
               debit_pot, debit_account, debit_period, credit_pot, credit_account, credit_period, sum(amount) AS amount
        FROM ledger.postings GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
    ), balanced AS (
        INSERT INTO ledger.balances (book, commodity, account, period, pot, code, amount)
        SELECT book, commodity, account, period, pot, CASE code WHEN '{RELEASE}' THEN '{HOLD}' ELSE code END,
               sum(signed)::bigint
        FROM alike CROSS JOIN LATERAL (
            VALUES (debit_pot, debit_account, debit_period, -amount),
                   (credit_pot, credit_account, credit_period, amount)) AS leg (pot, account, period, signed)
        GROUP BY 1, 2, 3, 4, 5, 6
    ) {days.from_postings("alike")}
"""
"""Postings between the same pots on a day are one first: no amount is below zero, so that sides keep their signs."""


def rebuild(writer: Writer) -> None:
    """Make every balance and the sums of every day from the postings; there are none before."""
    driver(writer).execute(_ADDED_UP)
