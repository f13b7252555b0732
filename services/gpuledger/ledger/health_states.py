"""What observations of health mean for the hosts of a book, told as facts of that book.

The facts are conclusions: they follow from the observations and the XID tables in the journals, and whenever these
say something else, a later conclusion with a higher ``basis`` takes the place of the earlier one. What other
sources say of a host, such as a planned maintenance, is in force again once the trouble is over.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.events import host as events
from gpuledger.events.envelope import Event, decode_data, make
from gpuledger.kernel.clock import instant, seconds
from gpuledger.ledger import projections, queries
from gpuledger.ledger.copying import driver
from gpuledger.ledger.facts import rank
from gpuledger.ledger.health import (
    XID_TABLE,
    Change,
    Observation,
    Tables,
    Trouble,
    Version,
    changes,
    troubles,
)
from gpuledger.ledger.inventory import HostFact

SOURCE = "gpuledger/health"
"""Who draws the conclusions."""


def tables(connection: Reader | Writer, *, org_seq: int | None = None) -> Tables:
    """Return every XID table that the organisation ever set, as of a row of ``~org``; now unless given."""
    versions = queries.policy_versions(connection, XID_TABLE, org_seq=org_seq)
    return Tables(
        Version(at_s, seq, changed.xid_table)
        for seq, at_s, changed in versions
        if changed.xid_table is not None
    )


def observations(
    connection: Reader | Writer, cluster: str, hosts: Collection[str] | None = None
) -> list[Observation]:
    """Return what was observed of a cluster's devices, or of those of some hosts."""
    rows = driver(connection).execute(
        "SELECT extract(epoch FROM effective_at)::bigint, body::text FROM ledger.journal WHERE book = %s"
        " AND workload IS NULL AND type = 'health.observed'"
        " AND (%s::text[] IS NULL OR body->>'host' = ANY(%s))",
        (cluster, _listed(hosts), _listed(hosts)),
    )
    found = []
    for at_s, body in rows:
        said = decode_data("health.observed", body)
        assert isinstance(said, events.HealthObserved)  # noqa: S101 - the query selected the type
        found.append(Observation(at_s, said))
    return found


def concluded(connection: Reader | Writer, cluster: str, table: Tables | None = None) -> list[Trouble]:
    """Return the troubles of a cluster's devices under the tables in force, or under another one."""
    return troubles(observations(connection, cluster), table or tables(connection))


def state_changes(
    connection: Reader | Writer, cluster: str, hosts: Collection[str] | None = None
) -> list[Event]:
    """Return the conclusions that the book does not hold yet.

    Args:
        connection: Where everything is read; a Writer that holds the book's lock sees what it will append to.
        cluster: The cluster, which is also the book.
        hosts: Hosts of which something new is known; all unless given.
    """
    seen = observations(connection, cluster, hosts)
    if not seen:
        return []
    by_host: dict[str, list[Observation]] = {}
    for one in seen:
        by_host.setdefault(one.said.host, []).append(one)
    wanted = changes(troubles(seen, tables(connection)))
    facts = _host_facts(connection, cluster, sorted(by_host))
    return [
        event
        for host, own in sorted(by_host.items())
        for event in _missing(wanted.get(host, []), facts.get(host, []), len(set(own)))
    ]


class _Said(NamedTuple):
    """What a conclusion says, but for how much it is based on."""

    state: events.HostState
    reason: str
    devices: tuple[str, ...]
    evidence_s: int | None
    noticed_s: int


def _missing(wanted: Sequence[Change], facts: Sequence[HostFact], basis: int) -> Iterable[Event]:
    own = [fact for fact in facts if fact.known.source == SOURCE]
    others = [fact for fact in facts if fact.known.source != SOURCE]
    counting: dict[int, HostFact] = {}
    for fact in sorted(own, key=lambda f: rank(f.known)):
        counting[fact.known.at_s] = fact
    # Whoever registers a host says nothing of its health: what was concluded of it goes on from there.
    again = {fact.known.at_s for fact in others if isinstance(fact.data, events.Registered)}
    for at_s in sorted({change.at_s for change in wanted} | counting.keys() | again):
        installed = _in_force(others, at_s)
        if installed is None or isinstance(installed.data, events.Retired):
            continue  # nothing is installed there, as far as is known; once it is, this is asked again
        change = next((c for c in reversed(wanted) if c.at_s <= at_s), Change(at_s, "healthy", "", (), at_s))
        if change.state == "healthy" and at_s not in counting and change not in wanted:
            continue
        said = _conclusion(change, at_s, installed.data)
        before = counting.get(at_s)
        if before is None:
            yield _event(at_s, said, installed.data, basis)
        elif _read(before.data, at_s) != said:
            # Of what was said before it is taken back also where the table was changed, and not what was observed.
            yield _event(at_s, said, installed.data, max(basis, (before.data.basis or 0) + 1))


def _conclusion(change: Change, at_s: int, others: events.HostFact) -> _Said:
    if change.state == "healthy":
        return _Said(others.state or "healthy", others.reason or "clean", (), None, at_s)
    return _Said(change.state, change.reason, change.devices, change.at_s, max(change.noticed_s, at_s))


def _read(data: events.HostFact, at_s: int) -> _Said:
    """Return what a conclusion said."""
    evidence_s = None if data.evidence_at is None else seconds(data.evidence_at)
    noticed_s = at_s if data.noticed_at is None else seconds(data.noticed_at)
    return _Said(
        data.state or "healthy", data.reason or "", tuple(data.gpu_uuids or ()), evidence_s, noticed_s
    )


def _event(at_s: int, said: _Said, installed: events.HostFact, basis: int) -> Event:
    fact = events.StateChanged(
        cluster=installed.cluster,
        host=installed.host,
        gpus=installed.gpus,
        gpu_model=installed.gpu_model,
        gpu_uuids=list(said.devices) or None,
        state=said.state,
        reason=said.reason,
        evidence_at=None if said.evidence_s is None else instant(said.evidence_s),
        noticed_at=instant(said.noticed_s) if said.noticed_s > at_s else None,
        basis=basis,
    )
    return make(id=f"{fact.host}/{at_s}/{basis}", source=SOURCE, at_s=at_s, data=fact)[0]


def _in_force(facts: Sequence[HostFact], at_s: int) -> HostFact | None:
    past = [fact for fact in facts if fact.known.at_s <= at_s]
    return max(past, key=lambda f: (f.known.at_s, rank(f.known)), default=None)


def _host_facts(
    connection: Reader | Writer, cluster: str, hosts: Sequence[str]
) -> Mapping[str, list[HostFact]]:
    facts: dict[str, list[HostFact]] = {}
    for fact in projections.host_facts(connection, cluster, hosts):
        facts.setdefault(fact.data.host, []).append(fact)
    return facts


def _listed(hosts: Collection[str] | None) -> list[str] | None:
    return None if hosts is None else sorted(hosts)
