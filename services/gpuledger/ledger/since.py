"""What a cluster's book and that of the organisation have come to hold since a row: only work that came and went?

A cycle by event is right while nothing else is there (docs/decisions/0038). Starts and admissions are named here;
whether they were ordered is the policy's to say.
"""

from typing import NamedTuple

from gpuledger.database.engine import Reader
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.ledger.copying import driver

ROWS_MAX = 256
"""After more rows nobody looks at each: a full cycle is as soon done."""

SUBMITTED, STARTED, DECIDED = "workload.submitted", "workload.started", "decision.made"

_CYCLES = ("allocation.issued", "allocation.amended")

_FREEING = ("workload.ended", "workload.preempted")
"""Rows after which GPUs are free, or somebody waits no more or again."""

_SAVED = "workload.checkpointed"

_UNREAD = (
    "workload.preemption_announced", "workload.ready", "workload.located", "source.heartbeat", "period.opened",
    "budget.proposed", "budget.commented", "budget.rejected", "budget.withdrawn", "budget.approved",
)  # fmt: skip
"""Rows that nothing is read from that a cycle is told: a period's grants pay for work, and order none of it.

What an approval orders stands in rows of its own.
"""


class Since(NamedTuple):
    """What came, of a kind that a cycle by event can be told.

    Args:
        seq: The newest row of the cluster's book.
        submitted: Workloads that the book did not know before, in the order of their rows.
        started: Workloads of which a start was booked.
        ended: Workloads of which a run ended, or that were withdrawn.
        saved: Workloads of which a run said that its work is saved.
        admitted: Workloads about which an admission decided.
        cycles: The ids of cycles and amendments that were recorded.
    """

    seq: int
    submitted: tuple[str, ...]
    started: tuple[str, ...]
    ended: tuple[str, ...]
    saved: tuple[str, ...]
    admitted: tuple[str, ...]
    cycles: tuple[str, ...]


def since(reader: Reader, cluster: str, seq: int, *, org_seq: int) -> Since | None:
    """Return what was booked after a row; None when anything came that only a full cycle can be told.

    Args:
        reader: A snapshot.
        cluster: The cluster.
        seq: The row of its book.
        org_seq: The row of ``~org`` that must be its newest still.
    """
    heads = dict(
        driver(reader).execute(
            "SELECT book, last_seq FROM ledger.books WHERE book = ANY(%s)", ([cluster, ORG_BOOK],)
        )
    )
    newest = heads.get(cluster, 0)
    if heads.get(ORG_BOOK, 0) != org_seq or newest - seq > ROWS_MAX:
        return None
    rows = driver(reader).execute(
        "SELECT j.type, j.workload, j.body->>'cycle',"
        " EXISTS (SELECT FROM ledger.journal AS k WHERE k.book = j.book AND k.workload = j.workload AND k.seq < j.seq)"
        " FROM ledger.journal AS j WHERE j.book = %s AND j.seq > %s ORDER BY j.seq",
        (cluster, seq),
    )
    found: dict[str, list[str]] = {
        SUBMITTED: [], STARTED: [], DECIDED: [], _FREEING[0]: [], _SAVED: [], _CYCLES[0]: []
    }  # fmt: skip
    for type_, workload, cycle, was_known in rows:
        if type_ in _CYCLES:
            found[_CYCLES[0]].append(cycle)
        elif type_ in _FREEING:
            found[_FREEING[0]].append(workload)
        elif type_ in (STARTED, DECIDED, _SAVED) or (type_ == SUBMITTED and not was_known):
            found[type_].append(workload)
        elif type_ not in _UNREAD:
            return None
    submitted, started, admitted, ended, saved, cycles = (
        tuple(found[kind]) for kind in (SUBMITTED, STARTED, DECIDED, _FREEING[0], _SAVED, _CYCLES[0])
    )
    return Since(
        seq=newest,
        submitted=submitted,
        started=started,
        ended=ended,
        saved=saved,
        admitted=admitted,
        cycles=cycles,
    )


def eligible_between(reader: Reader, cluster: str, after_s: int, at_s: int) -> list[str]:
    """Return the workloads that wait and became eligible after an instant and up to another, by name."""
    rows = driver(reader).execute(
        "SELECT DISTINCT workload FROM ledger.waits WHERE book = %s AND until_seq IS NULL"
        " AND from_at > to_timestamp(%s) AND from_at <= to_timestamp(%s)"
        " AND (to_at IS NULL OR to_at > to_timestamp(%s)) ORDER BY 1",
        (cluster, after_s, at_s, at_s),
    )
    return [workload for (workload,) in rows]


def hosts_change_between(reader: Reader, cluster: str, after_s: int, at_s: int) -> bool:
    """Tell whether a host is another by an instant than it was after one, as was known before."""
    row = driver(reader).execute(
        "SELECT 1 FROM ledger.hosts WHERE book = %(book)s AND until_seq IS NULL"
        " AND (from_at > to_timestamp(%(after)s) AND from_at <= to_timestamp(%(at)s)"
        "      OR to_at > to_timestamp(%(after)s) AND to_at <= to_timestamp(%(at)s)) LIMIT 1",
        {"book": cluster, "after": after_s, "at": at_s},
    ).fetchone()  # fmt: skip
    return row is not None
