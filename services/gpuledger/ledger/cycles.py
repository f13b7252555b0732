"""The record of policy cycles: each is one journalled fact, whole."""

from typing import Any

from gpuledger.database.engine import Reader
from gpuledger.events.budget import AllocationIssued
from gpuledger.events.envelope import decode_data
from gpuledger.ledger.copying import driver


def latest_cycle(reader: Reader, cluster: str) -> dict[str, Any] | None:
    """Return the newest cycle of a cluster under the published keys, or None when there was none."""
    row = (
        driver(reader)
        .execute(
            "SELECT body::text FROM ledger.journal WHERE book = %s AND workload IS NULL"
            " AND type = 'allocation.issued' ORDER BY seq DESC LIMIT 1",
            (cluster,),
        )
        .fetchone()
    )
    if row is None:
        return None
    issued = decode_data("allocation.issued", row[0])
    assert isinstance(issued, AllocationIssued)  # noqa: S101 - the query selected the type
    return issued.record
