"""Hardware failures of a cluster: found in its facts, credited once, reversed for good.

What is found is journalled as facts of the book: ``incident.found`` with every run that a failure ended, and one
``credit.granted`` for each of them. What a run is given back follows from these facts like all else of its workload.
Looking again finds the same and appends nothing; an incident of which more has become known gets a new version.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.envelope import Event, make
from gpuledger.events.fields import END_OF_TIME_S
from gpuledger.events.incident import CREDIT_CAP_S, CreditGranted, CreditReversed, IncidentFound
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, instant, seconds
from gpuledger.kernel.errors import NotFound, Refused
from gpuledger.ledger import projections, queries, store
from gpuledger.ledger.append import append
from gpuledger.ledger.copying import driver
from gpuledger.ledger.facts import Known
from gpuledger.ledger.faults import (
    UNKNOWN_HOST,
    WINDOW_S,
    Fault,
    Incident,
    RunName,
    closed_runs,
    host_faults,
    incidents_of,
    run_faults,
)
from gpuledger.ledger.incident_report import Claims, Version, claims_of, newest, workloads_in
from gpuledger.ledger.stops import NODE_FAILURES

SOURCE = "gpuledger/incidents"

MARGIN_S = 86_400
"""How far before and after the time that is looked at stops count too: faults that belong together may form a chain."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What the book does not have yet of an incident.

    Args:
        incident: The incident under the id that the book has or will have it, with all its runs.
        fresh: Those of its runs that were never credited.
        version: Whether ``incident.found`` is to be journalled, anew or for the first time.
    """

    incident: Incident
    fresh: tuple[RunName, ...]
    version: bool


@dataclass(frozen=True, slots=True)
class Credited:
    """What a search appended.

    Args:
        proposals: What was new.
        seq: The book's newest row after it; None when nothing was appended.
    """

    proposals: tuple[Proposal, ...]
    seq: int | None


@dataclass(frozen=True, slots=True)
class Reversal:
    """What reversing credits comes to.

    Args:
        runs: Runs whose credit is taken back.
        repeated: Runs whose credit had been taken back before; nothing happens to them.
        seq: The book's newest row after it; None when nothing was appended.
    """

    runs: tuple[RunName, ...]
    repeated: tuple[RunName, ...]
    seq: int | None = None


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


def propose(connection: Reader | Writer, cluster: str, from_s: int, to_s: int) -> list[Proposal]:
    """Return what a search would append.

    An incident that the book has under another id, because less was known when it was found, keeps that id: it has a
    run in common, or its host failed within the window. A run that was ever credited is not credited again.

    Raises:
        NotFound: When the cluster has no book.
    """
    found = find(connection, cluster, from_s, to_s)
    known = newest(connection, cluster)
    claimed = claims_of(connection, cluster, sorted({run.workload for i in found for run in i.runs}))
    by_id: dict[str, Incident] = {}
    for incident in found:
        name = _kept_id(incident, known, claimed)
        before = by_id.get(name, incident)
        runs = tuple(sorted({*before.runs, *incident.runs}))
        by_id[name] = replace(before, incident=name, runs=runs)
    proposals = []
    for name, incident in by_id.items():
        fresh = tuple(run for run in incident.runs if run not in claimed or not claimed[run].granted)
        listed = known[name].fact.runs if name in known else []
        version = name not in known or not {str(run) for run in incident.runs} <= set(listed)
        if fresh or version:
            proposals.append(Proposal(incident, fresh, version))
    return proposals


def credit(
    writer: Writer, cluster: str, *, from_s: int, to_s: int, clock: Clock, calendar: Calendar
) -> Credited:
    """Journal the incidents that were noticed in ``[from_s, to_s)`` and credit their runs, once.

    Args:
        writer: A transaction of its own; the caller commits it.
        cluster: The cluster.
        from_s: The start of the window.
        to_s: Its end.
        clock: Says when it is recorded.
        calendar: The organisation's days.

    Raises:
        NotFound: When the cluster has no book.
    """
    queries.require_cluster(writer, cluster)
    store.lock_book(writer, cluster)
    proposals = propose(writer, cluster, from_s, to_s)
    if not proposals:
        return Credited((), None)
    known = newest(writer, cluster)
    events = [event for p in proposals for event in _events(p, known.get(p.incident.incident))]
    head = append(writer, cluster, events, clock=clock, calendar=calendar).head
    assert head is not None  # noqa: S101 - append returns the head it leaves
    return Credited(tuple(proposals), head.last_seq)


def reversal(
    connection: Reader | Writer, cluster: str, incident: str, *, run: str | None = None, reason: str
) -> Reversal:
    """Return what reversing the credits of an incident would come to.

    Args:
        connection: A transaction.
        cluster: The cluster.
        incident: The incident's id.
        run: One run of it, as ``workload/run``; all unless given.
        reason: Why.

    Raises:
        NotFound: When the cluster, the incident or the run is not known, or was not credited.
        Refused: When no reason is given, or all was reversed before for another reason.
    """
    queries.require_cluster(connection, cluster)
    if not reason.strip():
        raise Refused("a reversal needs a reason", hint="say why: it is kept with the reversal")
    known = newest(connection, cluster).get(incident)
    if known is None:
        raise NotFound(
            f"incident {incident!r} is not known in {cluster}",
            hint=f"gpuledger incident list --cluster {cluster} names those that are",
        )
    claimed = claims_of(connection, cluster, workloads_in(known.fact.runs))
    granted = {name: claims for name, claims in claimed.items() if incident in claims.granted}
    if run is not None:
        granted = {name: claims for name, claims in granted.items() if str(name) == run}
    if not granted:
        raise NotFound(
            f"incident {incident!r} gave nothing to {run or 'any run'}",
            hint=f"gpuledger incident list --cluster {cluster} shows its runs as WORKLOAD/RUN",
        )
    before = {n: claims.reversed[incident] for n, claims in granted.items() if incident in claims.reversed}
    left = sorted(granted.keys() - before.keys())
    others = [fact for _, fact in sorted(before.items()) if fact.reason != reason]
    if not left and others:
        raise Refused(
            f"the credit was reversed before, by {others[0].by}: {others[0].reason}",
            hint="a reversal is for good, and keeps the reason that it was given",
        )
    return Reversal(tuple(left), tuple(sorted(before)))


def reverse(  # noqa: PLR0913 - an order names all that it is about
    writer: Writer,
    cluster: str,
    incident: str,
    *,
    run: str | None = None,
    by: str,
    reason: str,
    clock: Clock,
    calendar: Calendar,
) -> Reversal:
    """Take back the credit of an incident, for one run or all, for good; what was taken back stays so.

    Args:
        writer: A transaction of its own; the caller commits it.
        cluster: The cluster.
        incident: The incident's id.
        run: One run of it, as ``workload/run``; all unless given.
        by: Who orders it.
        reason: Why.
        clock: Says when it takes effect.
        calendar: The organisation's days.

    Raises:
        NotFound: As ``reversal``.
        Refused: As ``reversal``.
    """
    queries.require_cluster(writer, cluster)
    store.lock_book(writer, cluster)
    planned = reversal(writer, cluster, incident, run=run, reason=reason)
    if not planned.runs:
        return planned
    at_s = seconds(clock.now())
    events = []
    for name in planned.runs:
        fact = CreditReversed(
            cluster=cluster, workload=name.workload, run=name.run, incident=incident, reason=reason, by=by
        )
        event, _ = make(id=f"{incident}/{name}/reversed", source=SOURCE, at_s=at_s, data=fact)
        events.append(event)
    head = append(writer, cluster, events, clock=clock, calendar=calendar).head
    assert head is not None  # noqa: S101 - append returns the head it leaves
    return replace(planned, seq=head.last_seq)


def _kept_id(incident: Incident, known: Mapping[str, Version], claimed: Mapping[RunName, Claims]) -> str:
    """Return the id that the book has an incident under, or its own."""
    if incident.incident in known:
        return incident.incident
    names = {str(run) for run in incident.runs}
    credited = {name for run in incident.runs if run in claimed for name in claimed[run].granted}
    alike = [
        (version.at_s, name)
        for name, version in known.items()
        if name in credited
        or not names.isdisjoint(version.fact.runs)
        or (
            version.fact.host == incident.host != UNKNOWN_HOST
            and abs(version.at_s - incident.noticed_s) <= WINDOW_S
        )
    ]
    return min(alike)[1] if alike else incident.incident


def _events(proposal: Proposal, known: Version | None) -> Iterator[Event]:
    incident = proposal.incident
    if proposal.version:
        runs = sorted({str(run) for run in incident.runs} | set(known.fact.runs if known else ()))
        digest = hashlib.sha256("\n".join(runs).encode()).hexdigest()[:16]
        fact = IncidentFound(
            cluster=incident.cluster,
            incident=incident.incident,
            host=incident.host,
            fault=incident.fault,
            gpu_uuids=None if incident.gpu_uuids is None else list(incident.gpu_uuids),
            runs=runs,
        )
        own_id = incident.incident if known is None else f"{incident.incident}/{digest}"
        yield make(id=own_id, source=SOURCE, at_s=incident.noticed_s, data=fact)[0]
    for run in proposal.fresh:
        granted = CreditGranted(
            cluster=incident.cluster,
            workload=run.workload,
            run=run.run,
            incident=incident.incident,
            cap_s=CREDIT_CAP_S,
        )
        yield make(id=f"{incident.incident}/{run}", source=SOURCE, at_s=incident.noticed_s, data=granted)[0]


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
