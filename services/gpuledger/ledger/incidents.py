"""Hardware failures of a cluster: found in its facts, credited once, reversed for good.

What is found is journalled as facts of the book: ``incident.found`` with every run that a failure ended, and one
``credit.granted`` for each of them. What a run is given back follows from these facts like all else of its workload.
Looking again finds the same and appends nothing; an incident of which more has become known gets a new version, and
a credit whose facts were superseded is withdrawn.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.envelope import Event, make
from gpuledger.events.incident import CREDIT_CAP_S, CreditGranted, CreditReversed, IncidentFound
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, seconds
from gpuledger.kernel.errors import NotFound, Refused
from gpuledger.ledger import queries, store
from gpuledger.ledger.append import append
from gpuledger.ledger.faults import UNKNOWN_HOST, WINDOW_S, Incident, RunName
from gpuledger.ledger.incident_report import Claims, Version, claims_of, newest, workloads_in
from gpuledger.ledger.incident_review import SOURCE, Revision, review
from gpuledger.ledger.incident_review import events as revised
from gpuledger.ledger.incident_search import find


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
        revisions: What is concluded otherwise about runs that were credited before.
    """

    proposals: tuple[Proposal, ...]
    seq: int | None
    revisions: tuple[Revision, ...] = ()


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


def revise(connection: Reader | Writer, cluster: str, from_s: int, to_s: int) -> list[Revision]:
    """Return what a search would conclude otherwise about the incidents that the book has in its window."""
    known = newest(connection, cluster)
    return review(connection, cluster, [n for n, version in known.items() if from_s <= version.at_s < to_s])


def credit(
    writer: Writer, cluster: str, *, from_s: int, to_s: int, clock: Clock, calendar: Calendar
) -> Credited:
    """Journal the incidents that were noticed in ``[from_s, to_s)`` and credit their runs, once; revise earlier ones.

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
    revisions = revise(writer, cluster, from_s, to_s)
    if not (proposals or revisions):
        return Credited((), None)
    known = newest(writer, cluster)
    events = [event for p in proposals for event in _events(p, known.get(p.incident.incident))]
    events += revised(cluster, revisions)
    head = append(writer, cluster, events, clock=clock, calendar=calendar).head
    assert head is not None  # noqa: S101 - append returns the head it leaves
    return Credited(tuple(proposals), head.last_seq, tuple(revisions))


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
