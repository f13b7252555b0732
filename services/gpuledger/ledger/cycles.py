"""The record of policy cycles: each is one journalled fact."""

from typing import Any, NamedTuple

from gpuledger.database.engine import Reader
from gpuledger.events.budget import AllocationIssued
from gpuledger.events.envelope import decode_data
from gpuledger.ledger.copying import driver


class Recorded(NamedTuple):
    """A cycle as it was journalled.

    Args:
        seq: Its row in the cluster's book.
        at_s: The instant that it decided for.
        issued: The fact.
    """

    seq: int
    at_s: int
    issued: AllocationIssued


def latest(
    reader: Reader, cluster: str, *, at_s: int | None = None, before_seq: int | None = None
) -> Recorded | None:
    """Return the newest cycle of a cluster, or None when there was none.

    Args:
        reader: The ledger.
        cluster: The cluster.
        at_s: Look only at cycles that decided for this instant or an earlier one.
        before_seq: Look only at rows of the book up to this one.
    """
    row = (
        driver(reader)
        .execute(
            "SELECT seq, extract(epoch FROM effective_at)::bigint, body::text FROM ledger.journal"
            " WHERE book = %(book)s AND workload IS NULL AND type = 'allocation.issued'"
            " AND (%(at)s::bigint IS NULL OR effective_at <= to_timestamp(%(at)s::bigint))"
            " AND (%(seq)s::bigint IS NULL OR seq <= %(seq)s::bigint)"
            " ORDER BY seq DESC LIMIT 1",
            {"book": cluster, "at": at_s, "seq": before_seq},
        )
        .fetchone()
    )
    if row is None:
        return None
    seq, decided_s, body = row
    issued = decode_data("allocation.issued", body)
    assert isinstance(issued, AllocationIssued)  # noqa: S101 - the query selected the type
    return Recorded(seq, decided_s, issued)


def latest_cycle(reader: Reader, cluster: str, *, at_s: int | None = None) -> dict[str, Any] | None:
    """Return the newest cycle of a cluster under the published keys, or None when there was none.

    Args:
        reader: The ledger.
        cluster: The cluster.
        at_s: Look only at cycles that decided for this instant or an earlier one.
    """
    found = latest(reader, cluster, at_s=at_s)
    return None if found is None else found.issued.record
