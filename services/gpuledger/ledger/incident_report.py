"""Incidents as the books have them: their versions, what was credited and reversed, what it came to."""

import datetime as dt
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.envelope import decode_data
from gpuledger.events.incident import CreditGranted, CreditReversed, CreditWithdrawn, IncidentFound
from gpuledger.kernel.clock import instant, iso, seconds
from gpuledger.ledger import queries
from gpuledger.ledger.copying import driver
from gpuledger.ledger.credits import concluded
from gpuledger.ledger.faults import RunName
from gpuledger.ledger.identity import personal


class Version(NamedTuple):
    """The newest that a book says of an incident, and when the fault was noticed."""

    at_s: int
    fact: IncidentFound


class Claims(NamedTuple):
    """What is said of one run.

    Args:
        granted: Incident -> when it was noticed that the run was ever credited for.
        reversed: Incident -> why a person took that back.
        concluded: All that was concluded, in sequence.
    """

    granted: dict[str, int]
    reversed: dict[str, CreditReversed]
    concluded: list[CreditGranted | CreditWithdrawn]

    @property
    def stands(self) -> Collection[str]:
        """The incidents that ended the run by the newest conclusions, reversed or not."""
        return concluded(self.concluded).keys()

    @property
    def basis(self) -> dict[str, int]:
        """Incident -> the basis of the newest conclusion."""
        return {claim.incident: claim.basis for claim in sorted(self.concluded, key=lambda c: c.basis)}

    @property
    def counts(self) -> str | None:
        """The incident that the run is credited for: the earliest that stands and was not reversed."""
        standing = [(self.granted[name], name) for name in self.stands if name not in self.reversed]
        return min(standing)[1] if standing else None


class RunState(StrEnum):
    """What became of a run's credit for an incident."""

    CREDITED = "credited"
    REVERSED = "reversed"
    WITHDRAWN = "withdrawn"
    ELSEWHERE = "credited under another incident"
    NOT_CREDITED = "not credited"


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run of an incident.

    Args:
        run: ``workload/run``.
        account: Who paid for it; None while nothing is known of the run.
        credited_gpu_ms: What it was given back, physical; 0 unless it is credited for this incident.
        credited_under: The incident that it is credited for, if any.
        reason: Why the credit was reversed.
        by: Who reversed it.
    """

    run: str
    account: str | None
    state: RunState
    credited_gpu_ms: int
    credited_under: str | None = None
    reason: str | None = None
    by: str | None = None


@dataclass(frozen=True, slots=True)
class IncidentRow:
    """One incident, by its newest version."""

    cluster: str
    incident: str
    host: str
    fault: str
    gpu_uuids: tuple[str, ...] | None
    noticed_at: dt.datetime
    runs: tuple[RunRow, ...]

    @property
    def credited_gpu_ms(self) -> int:
        """What all its runs were given back, physical."""
        return sum(run.credited_gpu_ms for run in self.runs)

    def as_json(self) -> dict[str, Any]:
        """Return the incident under the published keys."""
        return {**asdict(self), "noticed_at": iso(self.noticed_at), "credited_gpu_ms": self.credited_gpu_ms}


def incidents(
    reader: Reader,
    cluster: str | None,
    from_s: int | None = None,
    to_s: int | None = None,
    as_of: dt.datetime | None = None,
) -> list[IncidentRow]:
    """Return the incidents that were noticed in ``[from_s, to_s)``, by cluster and time.

    Args:
        reader: A transaction.
        cluster: One cluster; all unless given.
        from_s: The start of the window; none unless given.
        to_s: Its end.
        as_of: What the ledger said at this recorded time.

    Raises:
        NotFound: When the cluster has no book.
    """
    queries.require_cluster(reader, cluster)
    found = []
    for book in queries.clusters(reader) if cluster is None else [cluster]:
        versions = [
            version
            for version in newest(reader, book, as_of).values()
            if (from_s is None or version.at_s >= from_s) and (to_s is None or version.at_s < to_s)
        ]
        found += _rows(reader, book, sorted(versions, key=lambda v: (v.at_s, v.fact.incident)), as_of)
    return found


def _rows(
    reader: Reader, book: str, versions: Sequence[Version], as_of: dt.datetime | None
) -> list[IncidentRow]:
    names = sorted({name for version in versions for name in version.fact.runs})
    if not names:
        return []
    claimed = {
        str(run): claims for run, claims in claims_of(reader, book, workloads_in(names), as_of).items()
    }
    accounts, amounts = _accounts(reader, book, names, as_of), _amounts(reader, book, names, as_of)
    return [
        IncidentRow(
            cluster=book,
            incident=fact.incident,
            host=fact.host,
            fault=fact.fault,
            gpu_uuids=None if fact.gpu_uuids is None else tuple(fact.gpu_uuids),
            noticed_at=instant(at_s),
            runs=tuple(
                _run(name, fact.incident, claimed.get(name), accounts.get(name), amounts.get(name, 0))
                for name in fact.runs
            ),
        )
        for at_s, fact in versions
    ]


def _run(name: str, incident: str, claims: Claims | None, account: str | None, amount: int) -> RunRow:
    under = claims.counts if claims else None
    if claims is not None and incident in claims.reversed:
        told = claims.reversed[incident]
        return RunRow(name, account, RunState.REVERSED, 0, under, told.reason, told.by)
    if claims is not None and incident in claims.granted and incident not in claims.stands:
        return RunRow(name, account, RunState.WITHDRAWN, 0, under)
    if under is None:
        return RunRow(name, account, RunState.NOT_CREDITED, 0)
    if under != incident:
        return RunRow(name, account, RunState.ELSEWHERE, 0, under)
    return RunRow(name, account, RunState.CREDITED, amount, under)


def newest(connection: Reader | Writer, book: str, as_of: dt.datetime | None = None) -> dict[str, Version]:
    """Return the newest version of every incident of a book, at a recorded time, now unless given."""
    rows = driver(connection).execute(
        "SELECT effective_at, body::text FROM ledger.journal WHERE book = %s AND workload IS NULL"
        " AND type = 'incident.found' AND recorded_at <= coalesce(%s, 'infinity'::timestamptz) ORDER BY seq",
        (book, as_of),
    )
    found = {}
    for effective_at, body in rows.fetchall():
        fact = decode_data("incident.found", body)
        assert isinstance(fact, IncidentFound)  # noqa: S101 - the query selected the type
        found[fact.incident] = Version(seconds(effective_at), fact)
    return found


def claims_of(
    connection: Reader | Writer, book: str, workloads: Sequence[str], as_of: dt.datetime | None = None
) -> dict[RunName, Claims]:
    """Return what is said of the credits of the workloads' runs, at a recorded time, now unless given.

    Of several reversals for one incident the first in the book is shown: it was in force from then on.
    """
    rows = driver(connection).execute(
        "SELECT type, j.body::text, effective_at, t.body FROM ledger.journal AS j LEFT JOIN side.texts AS t"
        " ON t.ref = j.extra_ref WHERE book = %s AND workload = ANY(%s)"
        " AND type IN ('credit.granted', 'credit.withdrawn', 'credit.reversed')"
        " AND recorded_at <= coalesce(%s, 'infinity'::timestamptz) ORDER BY seq",
        (book, list(workloads), as_of),
    ).fetchall()  # fmt: skip
    found: dict[RunName, Claims] = {}
    for type_, body, effective_at, texts in rows:
        fact = decode_data(type_, body)
        assert isinstance(fact, CreditGranted | CreditWithdrawn | CreditReversed)  # noqa: S101 - the query selected them
        claims = found.setdefault(RunName(fact.workload, fact.run), Claims({}, {}, []))
        if isinstance(fact, CreditReversed):
            claims.reversed.setdefault(fact.incident, personal(connection, fact, texts))
            continue
        claims.concluded.append(fact)
        if isinstance(fact, CreditGranted):
            at_s = seconds(effective_at)
            claims.granted[fact.incident] = min(at_s, claims.granted.get(fact.incident, at_s))
    return found


def workloads_in(names: Iterable[str]) -> list[str]:
    """Return every workload that ``workload/run`` may name: either part may hold a slash."""
    return sorted({name[:at] for name in names for at, character in enumerate(name) if character == "/"})


def _accounts(reader: Reader, book: str, names: Sequence[str], as_of: dt.datetime | None) -> dict[str, str]:
    holds, values = queries.in_force(reader, as_of)
    rows = driver(reader).execute(
        "SELECT s.workload || '/' || s.run, min(s.account) FROM ledger.segments AS s"
        f" WHERE {holds} AND s.book = %(book)s AND s.workload = ANY(%(workloads)s)"
        " AND s.workload || '/' || s.run = ANY(%(names)s) GROUP BY 1",
        {**values, "book": book, "workloads": workloads_in(names), "names": list(names)},
    )
    return dict(rows.fetchall())


def _amounts(reader: Reader, book: str, names: Sequence[str], as_of: dt.datetime | None) -> dict[str, int]:
    """Return what runs were given back, net of what was taken back again, in physical gpu_ms."""
    rows = driver(reader).execute(
        "SELECT workload || '/' || run, sum(CASE debit_pot WHEN 'spent' THEN amount ELSE -amount END)::bigint"
        " FROM ledger.postings WHERE book = %s AND workload = ANY(%s) AND workload || '/' || run = ANY(%s)"
        " AND code = 'credit' AND commodity = 'gpu_ms'"
        " AND (debit_pot, credit_pot) IN (('spent', 'credited'), ('credited', 'spent'))"
        " AND recorded_at <= coalesce(%s, 'infinity'::timestamptz) GROUP BY 1",
        (book, workloads_in(names), list(names), as_of),
    )
    return dict(rows.fetchall())
