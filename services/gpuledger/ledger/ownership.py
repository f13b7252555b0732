"""Whose a workload is now: the account that its newest run or wait is booked to."""

from collections.abc import Collection

from gpuledger.database.engine import Reader
from gpuledger.kernel.accounts import SEPARATOR
from gpuledger.ledger.copying import driver


def within(reader: Reader, cluster: str, workloads: Collection[str], account: str) -> set[str]:
    """Return those of some workloads of a cluster that belong, as far as the book knows now, to an account or below it.

    One that was mapped or moved to several accounts in turn belongs to where it is now: what is decided about it is
    for who pays by now. Its story is for everybody who paid for a part of it (``policy.story``).

    Args:
        reader: A snapshot.
        cluster: The cluster.
        workloads: The workloads that are asked about.
        account: An account; itself and all below it count.
    """
    rows = driver(reader).execute(
        """
        SELECT workload FROM (
            SELECT DISTINCT ON (workload) workload, account FROM (
                SELECT workload, account, from_at, to_at FROM ledger.segments
                WHERE book = %(book)s AND workload = ANY(%(workloads)s) AND until_seq IS NULL
                UNION ALL
                SELECT workload, account, from_at, to_at FROM ledger.waits
                WHERE book = %(book)s AND workload = ANY(%(workloads)s) AND until_seq IS NULL) AS known
            ORDER BY workload, to_at DESC NULLS FIRST, from_at DESC, account) AS newest
        WHERE account = %(account)s OR starts_with(account, %(below)s)
        """,
        {"book": cluster, "workloads": list(workloads), "account": account, "below": account + SEPARATOR},
    )
    return {workload for (workload,) in rows}
