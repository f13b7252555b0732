"""The closes of a period as its book tells of them: what fixed, settled, sealed and undid each version."""

import datetime as dt
from dataclasses import dataclass

from gpuledger.database.engine import Reader, Writer
from gpuledger.events import closing as events
from gpuledger.events.envelope import decode_data
from gpuledger.events.registry import Fact
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger import queries
from gpuledger.ledger.copying import driver

_OF_CLOSES = (events.PeriodClosing, events.PeriodClosed, events.PeriodSealed, events.PeriodReopened)


@dataclass(slots=True)
class CloseRows:
    """One version of the close of a period.

    Args:
        version: 1 for the first close, one more after each reopening.
        closing_seq: The row that fixed what it is made of.
        closing: What that row says.
        closed_seq: The row that settled it; None before.
        reconciled: What came of the comparison with the scheduler's record, where there was one.
        sealed_seq: The row that says the digest of its file; None before.
        digest: That digest, in hexadecimal.
        reopened_seq: The row that undid it; None while it holds.
        closing_at: When the closing row was recorded.
        sealed_at: When the sealed row was recorded.
        reopened_at: When the row that undid it was recorded.
    """

    version: int
    closing_seq: int
    closing: events.PeriodClosing
    closing_at: dt.datetime
    closed_seq: int | None = None
    reconciled: events.Reconciled | None = None
    sealed_seq: int | None = None
    sealed_at: dt.datetime | None = None
    digest: str | None = None
    reopened_seq: int | None = None
    reopened_at: dt.datetime | None = None


def closes(
    connection: Reader | Writer, cluster: str, period: str, as_of: dt.datetime | None = None
) -> list[CloseRows]:
    """Return every version of the close of a period, in order, as of a recorded time; now unless given."""
    return list_closes(connection, cluster, period, as_of)


def list_closes(
    connection: Reader | Writer,
    cluster: str | None = None,
    period: str | None = None,
    as_of: dt.datetime | None = None,
) -> list[CloseRows]:
    """Return every version of every close, by cluster and period.

    Args:
        connection: A transaction.
        cluster: One cluster; all of them unless given.
        period: One budget period; all of them unless given.
        as_of: What the books said at this recorded time; now unless given.
    """
    rows = driver(connection).execute(
        "SELECT book, seq, recorded_at, type, body::text FROM ledger.journal WHERE book = ANY(%s)"
        " AND workload IS NULL AND type IN ('period.closing', 'period.closed', 'period.sealed', 'period.reopened')"
        " AND (%s::text IS NULL OR body->>'period' = %s)"
        " AND recorded_at <= coalesce(%s, 'infinity'::timestamptz) ORDER BY book, body->>'period', seq",
        (queries.clusters(connection) if cluster is None else [cluster], period, period, as_of),
    )
    found: dict[tuple[str, str], list[CloseRows]] = {}
    for book, seq, recorded_at, type_, body in rows.fetchall():
        fact = decode_data(type_, body)
        assert isinstance(fact, _OF_CLOSES)  # noqa: S101 - the query selected the types
        _add(found.setdefault((book, fact.period), []), seq, recorded_at, fact)
    return [rows for versions in found.values() for rows in versions]


def close_of(
    connection: Reader | Writer,
    cluster: str,
    period: str,
    version: int | None = None,
    as_of: dt.datetime | None = None,
) -> CloseRows:
    """Return one version of the close of a period; the newest unless given, as of a recorded time.

    Raises:
        NotFound: When there is none.
    """
    found = closes(connection, cluster, period, as_of)
    for close in reversed(found):
        if version in (None, close.version):
            return close
    what = "was never closed" if version is None or not found else f"has no version {version} of a close"
    raise NotFound(
        f"{period} of {cluster} {what}", hint=f"gpuledger close run {period} --cluster {cluster} closes it"
    )


def previous_closing(
    connection: Reader | Writer, cluster: str, seq: int
) -> tuple[int, events.PeriodClosing] | None:
    """Return the newest row before another that fixed any close of the book, and what it says; None for the first."""
    row = driver(connection).execute(
        "SELECT seq, body::text FROM ledger.journal WHERE book = %s AND workload IS NULL AND type = 'period.closing'"
        " AND seq < %s ORDER BY seq DESC LIMIT 1",
        (cluster, seq),
    ).fetchone()  # fmt: skip
    if row is None:
        return None
    fact = decode_data("period.closing", row[1])
    assert isinstance(fact, events.PeriodClosing)  # noqa: S101 - the query selected the type
    return row[0], fact


def _add(found: list[CloseRows], seq: int, recorded_at: dt.datetime, fact: Fact) -> None:
    match fact:
        case events.PeriodClosing():
            found.append(CloseRows(fact.version, seq, fact, recorded_at))
        case events.PeriodClosed() if found:
            found[-1].closed_seq, found[-1].reconciled = seq, fact.reconciled
        case events.PeriodSealed() if found:
            found[-1].sealed_seq, found[-1].digest, found[-1].sealed_at = seq, fact.digest, recorded_at
        case events.PeriodReopened() if found:
            found[-1].reopened_seq, found[-1].reopened_at = seq, recorded_at
