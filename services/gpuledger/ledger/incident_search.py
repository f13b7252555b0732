"""The hardware failures of a cluster, as the facts known now tell them: reads for `faults`, which decides."""

from collections.abc import Iterable, Sequence

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.fields import END_OF_TIME_S
from gpuledger.kernel.clock import instant
from gpuledger.ledger import projections, queries, store
from gpuledger.ledger.copying import driver
from gpuledger.ledger.facts import Known
from gpuledger.ledger.faults import (
    WINDOW_S,
    Fault,
    Incident,
    closed_runs,
    host_faults,
    incidents_of,
    run_faults,
)
from gpuledger.ledger.stops import NODE_FAILURES

MARGIN_S = 86_400
"""How far before and after the time that is looked at stops count too: faults that belong together may form a chain."""


def find(connection: Reader | Writer, cluster: str, from_s: int, to_s: int) -> list[Incident]:
    """Return the incidents that were noticed in ``[from_s, to_s)``, by time, as the facts known now say.

    Raises:
        NotFound: When the cluster has no book.
    """
    queries.require_cluster(connection, cluster)
    start_s, end_s = max(0, from_s - MARGIN_S), min(to_s, END_OF_TIME_S) + MARGIN_S
    hosts = list(projections.host_facts(connection, cluster))
    names = _workloads_of_failed_hosts(connection, cluster, start_s, end_s)
    failed = _known(connection, cluster, names)
    faults = [
        fault
        for fault in (*host_faults(hosts), *run_faults(closed_runs(failed)))
        if start_s <= fault.noticed_s < end_s and len(fault.hosts) == 1
    ]
    beside = sorted(set(_workloads_on(connection, cluster, faults)).difference(names))
    workloads = failed + _known(connection, cluster, beside)
    return [i for i in incidents_of(cluster, hosts, workloads) if from_s <= i.noticed_s < to_s]


def _known(connection: Reader | Writer, book: str, workloads: Sequence[str]) -> list[Known]:
    return [known for _, known in store.facts_of(connection, book, workloads)]


def _workloads_of_failed_hosts(connection: Reader | Writer, book: str, start_s: int, end_s: int) -> list[str]:
    """Return the workloads with a run that stopped in ``[start_s, end_s)`` and some stop that names a failed host."""
    rows = driver(connection).execute(
        "SELECT DISTINCT s.workload FROM ledger.segments AS s WHERE s.book = %s AND s.until_seq IS NULL"
        " AND s.to_at >= %s AND s.to_at < %s AND EXISTS (SELECT 1 FROM ledger.journal AS j"
        " WHERE j.book = s.book AND j.workload = s.workload"
        " AND j.type IN ('workload.ended', 'workload.preempted', 'workload.requeued')"
        # A superset: the rules decide later.
        " AND translate(lower(j.body->>'reason'), '_-', '') ~ %s) ORDER BY 1",
        (book, instant(start_s), instant(end_s), "|".join(sorted(NODE_FAILURES))),
    )
    return [name for (name,) in rows]


def _workloads_on(connection: Reader | Writer, book: str, faults: Iterable[Fault]) -> list[str]:
    """Return the workloads with a run that left a host in the window after a fault of it."""
    instants = sorted({(f.hosts[0], at_s) for f in faults for at_s in (f.evidence_s, f.noticed_s)})
    if not instants:
        return []
    hosts, moments = zip(*instants, strict=True)
    rows = driver(connection).execute(
        "SELECT DISTINCT s.workload FROM unnest(%s::text[], %s::timestamptz[]) AS f (host, at)"
        " JOIN ledger.segments AS s ON f.host = ANY(s.hosts)"
        " AND s.to_at BETWEEN f.at AND f.at + make_interval(secs => %s)"
        " WHERE s.book = %s AND s.until_seq IS NULL ORDER BY 1",
        (list(hosts), [instant(at_s) for at_s in moments], WINDOW_S, book),
    )
    return [name for (name,) in rows]
