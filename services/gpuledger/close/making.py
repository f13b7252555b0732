"""Making the file of a close from the journal: the same bytes each time, whenever and wherever it is made."""

from collections.abc import Collection
from typing import NamedTuple

from gpuledger.close import statement
from gpuledger.close.checking import Finding, check
from gpuledger.close.document import (
    FORMAT,
    Book,
    Document,
    Policy,
    SourceState,
    Superseded,
    Time,
    encode,
)
from gpuledger.close.document import digest as digest_of
from gpuledger.database.engine import Reader, Writer
from gpuledger.events.closing import Frozen
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.kernel.errors import Conflict, Refused
from gpuledger.ledger import close_policies, close_range, close_sums, queries
from gpuledger.ledger.close_rows import CloseRows, closes, previous_closing


class Made(NamedTuple):
    """A close as the journal has it now.

    Args:
        rows: The rows of the book that it stands on.
        document: What it says.
        content: That in canonical form.
        digest: SHA-256 of the form.
        findings: What does not hold of it.
        inner: The accounts that had others below them: what they own themselves is told under ``~own``.
    """

    rows: CloseRows
    document: Document
    content: bytes
    digest: str
    findings: list[Finding]
    inner: Collection[str]


def make(connection: Reader | Writer, cluster: str, period: str, version: int | None = None) -> Made:
    """Make one version of the close of a period; the newest unless given.

    Args:
        connection: A snapshot, or the transaction that settled it.
        cluster: The cluster.
        period: The budget period.
        version: The version.

    Raises:
        Refused: When there is no such close, or it was begun before there were files.
        Conflict: When it is not settled yet.
    """
    told = closes(connection, cluster, period)
    rows = _version(told, cluster, period, version)
    frozen = _frozen(rows, cluster, period)
    inner = queries.inner_accounts(connection, frozen.org_seq)
    sums = close_sums.sums(connection, cluster, period, rows)
    lines = statement.lines(sums, inner)
    document = Document(
        format=FORMAT,
        cluster=cluster,
        period=period,
        version=rows.version,
        supersedes=_superseded(told, rows),
        time=Time(
            timezone=frozen.timezone,
            tzdata=frozen.tzdata,
            starts_at=frozen.starts_at,
            ends_at=frozen.ends_at,
        ),
        books=_books(connection, cluster, rows, frozen),
        offsets=frozen.positions,
        sources=_sources(connection, cluster, rows, frozen),
        policies=_policies(connection, cluster, rows, frozen),
        reconciled=rows.reconciled,
        accounts=lines,
        late=statement.late(sums, inner, period),
        totals=statement.totals(lines),
    )
    content = encode(document)
    findings = check(document, sums, close_sums.crossings(connection, cluster, period, rows))
    return Made(rows, document, content, digest_of(content), findings, inner)


def _version(told: list[CloseRows], cluster: str, period: str, version: int | None) -> CloseRows:
    found = [rows for rows in told if version in (None, rows.version)]
    if not found:
        what = "was never closed" if not told else f"has no version {version} of a close"
        raise Refused(
            f"{period} of {cluster} {what}",
            hint=f"gpuledger close run {period} --cluster {cluster} closes it",
        )
    if found[-1].closed_seq is None:
        raise Conflict(
            f"version {found[-1].version} of the close of {period} of {cluster} is not settled",
            hint=f"gpuledger close run {period} --cluster {cluster} goes on with it",
        )
    return found[-1]


def _frozen(rows: CloseRows, cluster: str, period: str) -> Frozen:
    if rows.closing.frozen is None:
        raise Refused(
            f"version {rows.version} of the close of {period} of {cluster} was begun before closes had files",
            hint=f"gpuledger close reopen {period} --cluster {cluster} --reason TEXT, then close it again",
        )
    return rows.closing.frozen


def _superseded(told: list[CloseRows], rows: CloseRows) -> Superseded | None:
    before = next((each for each in told if each.version == rows.version - 1), None)
    if before is None or before.reopened_seq is None:
        return None
    return Superseded(version=before.version, digest=before.digest, reopened_seq=before.reopened_seq)


def _books(connection: Reader | Writer, cluster: str, rows: CloseRows, frozen: Frozen) -> list[Book]:
    """Each close begins after the rows that the newest close of the book before it holds."""
    before = previous_closing(connection, cluster, rows.closing_seq)
    org_before = before[1].frozen.org_seq if before and before[1].frozen else 0
    ranges = [
        close_range.read(connection, ORG_BOOK, org_before + 1, frozen.org_seq),
        close_range.read(connection, cluster, (before[0] if before else 0) + 1, rows.closing_seq),
    ]
    return [Book(**found._asdict()) for found in ranges]


def _sources(connection: Reader | Writer, cluster: str, rows: CloseRows, frozen: Frozen) -> list[SourceState]:
    return [
        SourceState(source=source, told_until_at=at, silent=at < frozen.ends_at)
        for source, at in close_policies.told_until(connection, cluster, rows.closing_seq)
    ]


def _policies(connection: Reader | Writer, cluster: str, rows: CloseRows, frozen: Frozen) -> list[Policy]:
    found = close_policies.policy_versions(
        connection,
        cluster,
        seq=rows.closing_seq,
        org_seq=frozen.org_seq,
        start=frozen.starts_at,
        end=frozen.ends_at,
    )
    return [Policy(**version._asdict()) for version in found]
