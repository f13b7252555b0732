"""The record of policy cycles: each is one journalled fact, and lies beside every decision of it for a while."""

from typing import NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.budget import AllocationIssued
from gpuledger.events.envelope import decode_data
from gpuledger.ledger.copying import driver

WAKING = (
    "workload.submitted", "workload.ended", "workload.preempted", "workload.requeued", "workload.resized",
    "host.registered", "host.state_changed", "host.retired",
)  # fmt: skip
"""Facts after which somebody may start: work that came, GPUs that are free, GPUs that came or went."""

_ISSUED = (
    "SELECT j.seq, extract(epoch FROM j.effective_at)::bigint, j.body::text FROM ledger.journal AS j"
    " WHERE j.book = %(book)s AND j.workload IS NULL AND j.type = 'allocation.issued'"
)

_NEWEST = (
    "AND j.effective_at <= to_timestamp(%(at)s) AND (%(seq)s::bigint IS NULL OR j.seq <= %(seq)s::bigint)"
    " ORDER BY j.effective_at DESC, j.seq DESC LIMIT 1"
)


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


class Named(NamedTuple):
    """Where a cycle stands.

    Args:
        seq: Its row in the cluster's book.
        at_s: The instant that it decided for.
        cycle: Its id.
        every_s: The interval of the leader that ran it; None where none did.
    """

    seq: int
    at_s: int
    cycle: str
    every_s: int | None


def latest(
    connection: Reader | Writer, cluster: str, *, at_s: int, seq: int | None = None
) -> Recorded | None:
    """Return the newest cycle of a cluster up to an instant, or None when there was none.

    Args:
        connection: A transaction.
        cluster: The cluster.
        at_s: Of the cycles that decided for this instant or an earlier one, the one of the latest instant counts,
            whichever was recorded last.
        seq: Look only at rows of the book up to this one.
    """
    return _one(
        connection,
        f"{_ISSUED} {_NEWEST}",
        book=cluster,
        at=at_s,
        seq=seq,
    )


def named(connection: Reader | Writer, cluster: str, at_s: int, *, seq: int | None = None) -> Named | None:
    """Return where the newest cycle up to an instant stands, without reading what it decided; as ``latest``."""
    row = driver(connection).execute(
        "SELECT j.seq, extract(epoch FROM j.effective_at)::bigint, j.body->>'cycle',"
        " (j.body->>'every_s')::bigint FROM ledger.journal AS j"
        " WHERE j.book = %(book)s AND j.workload IS NULL AND j.type = 'allocation.issued'"
        f" {_NEWEST}",
        {"book": cluster, "at": at_s, "seq": seq},
    ).fetchone()  # fmt: skip
    return None if row is None else Named(*row)


def of_instant(connection: Reader | Writer, cluster: str, at_s: int) -> Recorded | None:
    """Return the cycle that was recorded for an instant, or None."""
    return _one(
        connection,
        f"{_ISSUED} AND j.effective_at = to_timestamp(%(at)s) ORDER BY j.seq LIMIT 1",
        book=cluster,
        at=at_s,
    )


def find(connection: Reader | Writer, cycle: str) -> Recorded | None:
    """Return the cycle of an id, or None when there is none."""
    cluster, _, _ = cycle.rpartition("@")
    return _one(
        connection,
        f"{_ISSUED} AND j.seq IN (SELECT i.seq FROM ledger.identities AS i"
        " WHERE i.book = %(book)s AND i.event_id = %(id)s) AND j.body->>'cycle' = %(cycle)s",
        book=cluster,
        id=f"cycle/{cycle}",
        cycle=cycle,
    )


def is_woken(connection: Reader | Writer, cluster: str, after_seq: int) -> bool:
    """Tell whether anything was booked after a row that a cycle should not wait for the next minute to hear of."""
    row = driver(connection).execute(
        "SELECT 1 FROM ledger.journal WHERE book = %s AND seq > %s AND type = ANY(%s) LIMIT 1",
        (cluster, after_seq, list(WAKING)),
    ).fetchone()  # fmt: skip
    return row is not None


def _one(connection: Reader | Writer, query: str, **values: object) -> Recorded | None:
    row = driver(connection).execute(query, values).fetchone()
    if row is None:
        return None
    seq, decided_s, body = row
    issued = decode_data("allocation.issued", body)
    assert isinstance(issued, AllocationIssued)  # noqa: S101 - the query selected the type
    return Recorded(seq, decided_s, issued)
