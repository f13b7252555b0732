"""What is asked of hosts by others than their scheduler: which are to be emptied, and which are well again.

A scheduler tells of its own drains too, and would otherwise be given its own word back as an order for ever.
"""

from gpuledger.database.engine import Reader
from gpuledger.ledger.copying import driver


def host_orders(reader: Reader, cluster: str, scheduler: str, at_s: int) -> dict[str, bool]:
    """Return host -> whether it is to take no new run, by the last word of any source but the scheduler.

    Args:
        reader: The ledger.
        cluster: The cluster.
        scheduler: What begins the sources of the scheduler's own facts, such as ``slurm``.
        at_s: The instant.
    """
    rows = driver(reader).execute(
        """
        SELECT DISTINCT ON (body ->> 'host') body ->> 'host', body ->> 'state' NOT IN ('healthy', 'reserved')
        FROM ledger.journal
        WHERE book = %(book)s AND workload IS NULL AND type = 'host.state_changed'
          AND body ->> 'state' IS NOT NULL AND split_part(source, '/', 1) <> %(scheduler)s
          AND effective_at <= to_timestamp(%(at)s)
        ORDER BY body ->> 'host', effective_at DESC, seq DESC
        """,
        {"book": cluster, "scheduler": scheduler, "at": at_s},
    )
    return dict(rows.fetchall())
