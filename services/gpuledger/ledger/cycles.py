"""The record of policy cycles: each is one journalled fact, whole."""

from typing import Any

from gpuledger.database.engine import Reader
from gpuledger.events.budget import AllocationIssued
from gpuledger.events.envelope import decode_data
from gpuledger.ledger.copying import driver


def latest_cycle(reader: Reader, cluster: str, *, at_s: int | None = None) -> dict[str, Any] | None:
    """Return the newest cycle of a cluster under the published keys, or None when there was none.

    Args:
        reader: The ledger.
        cluster: The cluster.
        at_s: Look only at cycles that decided for this instant or an earlier one.
    """
    row = (
        driver(reader)
        .execute(
            "SELECT body::text FROM ledger.journal WHERE book = %(book)s AND workload IS NULL"
            " AND type = 'allocation.issued'"
            " AND (%(at)s::bigint IS NULL OR effective_at <= to_timestamp(%(at)s::bigint))"
            " ORDER BY seq DESC LIMIT 1",
            {"book": cluster, "at": at_s},
        )
        .fetchone()
    )
    if row is None:
        return None
    issued = decode_data("allocation.issued", row[0])
    assert isinstance(issued, AllocationIssued)  # noqa: S101 - the query selected the type
    return issued.record
