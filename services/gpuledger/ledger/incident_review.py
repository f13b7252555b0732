"""Credits looked at again: whether what is known now still says that an incident ended the run.

A credit is a conclusion from facts - that a host failed, that a run stopped with it. When these are superseded, the
credit does not stand any more, and is withdrawn; when they hold again, it is granted again under a higher ``basis``.
What a person reversed stays reversed.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.envelope import Event, make
from gpuledger.events.incident import CREDIT_CAP_S, CreditGranted, CreditWithdrawn
from gpuledger.kernel.clock import seconds
from gpuledger.ledger.copying import driver
from gpuledger.ledger.faults import RunName
from gpuledger.ledger.incident_report import Claims, Version, claims_of, newest, workloads_in
from gpuledger.ledger.incident_search import MARGIN_S, find

SOURCE = "gpuledger/incidents"


class Revision(NamedTuple):
    """Another conclusion about a run that was credited before.

    Args:
        run: The run.
        incident: The incident that it was credited for.
        at_s: When that was noticed.
        basis: Which conclusion about the two it is.
        stands: Whether the incident ended the run after all, or did not.
    """

    run: RunName
    incident: str
    at_s: int
    basis: int
    stands: bool


def review(connection: Reader | Writer, cluster: str, incidents: Collection[str]) -> list[Revision]:
    """Return what is to be concluded otherwise about the runs of incidents that the book has.

    Args:
        connection: Where everything is read; a Writer that holds the book's lock sees what it will append to.
        cluster: The cluster, which is also the book.
        incidents: Their ids.
    """
    known = newest(connection, cluster)
    versions = [known[name] for name in sorted(incidents) if name in known]
    names = {run for version in versions for run in version.fact.runs}
    claimed = {
        run: claims
        for run, claims in claims_of(connection, cluster, workloads_in(names)).items()
        if str(run) in names and claims.granted
    }
    if not claimed:
        return []
    lost: set[RunName] = set()
    for from_s, to_s in _windows(connection, cluster, versions, claimed):
        lost |= {run for found in find(connection, cluster, from_s, to_s) for run in found.runs}
    return [
        revision
        for run, claims in sorted(claimed.items())
        for revision in _revised(run, claims, is_lost=run in lost)
    ]


def _revised(run: RunName, claims: Claims, *, is_lost: bool) -> Iterator[Revision]:
    stands = [name for name in claims.stands if name not in claims.reversed]
    if not is_lost:
        for name in sorted(stands):
            yield Revision(run, name, claims.granted[name], claims.basis[name] + 1, stands=False)
    elif not stands and not claims.reversed:
        at_s, name = min((at_s, name) for name, at_s in claims.granted.items())
        yield Revision(run, name, at_s, claims.basis[name] + 1, stands=True)


def _windows(
    connection: Reader | Writer, cluster: str, versions: Iterable[Version], runs: Iterable[RunName]
) -> list[tuple[int, int]]:
    """Return the times around which the incidents were noticed and their runs stopped, as windows that are apart."""
    workloads, names = zip(*((run.workload, run.run) for run in runs), strict=True)
    rows = driver(connection).execute(
        "SELECT max(s.to_at) FROM ledger.segments AS s"
        " JOIN unnest(%s::text[], %s::text[]) AS r (workload, run) USING (workload, run)"
        " WHERE s.book = %s AND s.until_seq IS NULL AND s.to_at IS NOT NULL GROUP BY s.workload, s.run",
        (list(workloads), list(names), cluster),
    )
    moments = {seconds(to_at) for (to_at,) in rows} | {version.at_s for version in versions}
    found: list[tuple[int, int]] = []
    for at_s in sorted(moments):
        from_s, to_s = at_s - MARGIN_S, at_s + MARGIN_S + 1
        if found and from_s <= found[-1][1]:
            from_s = found.pop()[0]
        found.append((from_s, to_s))
    return found


def touched(connection: Reader | Writer, cluster: str, since_seq: int) -> set[str]:
    """Return the incidents about whose workloads or hosts the book learned something after a row."""
    known = newest(connection, cluster)
    if not known:
        return set()
    workloads = workloads_in(run for version in known.values() for run in version.fact.runs)
    rows = driver(connection).execute(
        "SELECT DISTINCT workload FROM ledger.journal WHERE book = %s AND seq > %s AND workload = ANY(%s)"
        " AND type LIKE 'workload.%%'",
        (cluster, since_seq, workloads),
    )
    changed = {name for (name,) in rows}
    hosts = _hosts(connection, cluster, since_seq)
    if hosts:
        rows = driver(connection).execute(
            "SELECT DISTINCT workload FROM ledger.segments WHERE book = %s AND until_seq IS NULL"
            " AND workload = ANY(%s) AND hosts && %s",
            (cluster, workloads, sorted(hosts)),
        )
        changed |= {name for (name,) in rows}
    return {
        name
        for name, version in known.items()
        if version.fact.host in hosts or not changed.isdisjoint(workloads_in(version.fact.runs))
    }


def _hosts(connection: Reader | Writer, cluster: str, since_seq: int) -> set[str]:
    rows = driver(connection).execute(
        "SELECT DISTINCT body->>'host' FROM ledger.journal WHERE book = %s AND workload IS NULL"
        " AND type LIKE 'host.%%' AND seq > %s",
        (cluster, since_seq),
    )
    return {name for (name,) in rows}


def events(cluster: str, revisions: Iterable[Revision]) -> Iterator[Event]:
    """Yield revisions as facts; the same revision is the same event."""
    for revision in revisions:
        run, name, basis = revision.run, revision.incident, revision.basis
        fact: CreditGranted | CreditWithdrawn
        if revision.stands:
            fact = CreditGranted(
                cluster=cluster,
                workload=run.workload,
                run=run.run,
                incident=name,
                cap_s=CREDIT_CAP_S,
                basis=basis,
            )
        else:
            fact = CreditWithdrawn(
                cluster=cluster, workload=run.workload, run=run.run, incident=name, basis=basis
            )
        yield make(id=f"{name}/{run}/{basis}", source=SOURCE, at_s=revision.at_s, data=fact)[0]
