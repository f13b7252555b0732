"""Whose a workload is: the accounts that its runs and waits were booked to."""

from collections.abc import Collection

from gpuledger.database.engine import Reader
from gpuledger.kernel.accounts import SEPARATOR
from gpuledger.ledger.copying import driver


def within(reader: Reader, cluster: str, workloads: Collection[str], account: str) -> set[str]:
    """Return those of some workloads of a cluster that belong, as far as the book knows now, to an account or below it.

    One that was mapped to several accounts in turn belongs to where it is now.

    Args:
        reader: A snapshot.
        cluster: The cluster.
        workloads: The workloads that are asked about.
        account: An account; itself and all below it count.
    """
    rows = driver(reader).execute(
        """
        SELECT DISTINCT workload FROM (
            SELECT workload, account FROM ledger.segments
            WHERE book = %(book)s AND workload = ANY(%(workloads)s) AND until_seq IS NULL
            UNION ALL
            SELECT workload, account FROM ledger.waits
            WHERE book = %(book)s AND workload = ANY(%(workloads)s) AND until_seq IS NULL) AS known
        WHERE account = %(account)s OR starts_with(account, %(below)s)
        """,
        {"book": cluster, "workloads": list(workloads), "account": account, "below": account + SEPARATOR},
    )
    return {workload for (workload,) in rows}
