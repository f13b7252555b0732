"""The steps of a close: freeze, reconcile, settle, validate, seal, publish.

Each begins where the one before ended, in whatever process that was: what a step has done is in the book or in the
warehouse when it returns, and done again it changes nothing. Killed anywhere, the next one who runs the steps goes on
and comes to the same file. The command and the pipelines run these same functions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa

from gpuledger.close import files, store
from gpuledger.close.making import Made, make
from gpuledger.close.reconciling import of_cluster, summary
from gpuledger.close.rendering import render
from gpuledger.close.store import Place
from gpuledger.database.engine import Reader, Writer, reading
from gpuledger.events.closing import Reconciled
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, SystemClock, instant, iso, seconds
from gpuledger.kernel.errors import Refused, Unavailable
from gpuledger.ledger import closing, queries
from gpuledger.ledger.attempts import booked
from gpuledger.ledger.close_policies import told_until
from gpuledger.ledger.close_rows import CloseRows, close_of, closes
from gpuledger.ledger.periods import open_periods
from gpuledger.reconcile.reconciling import Reconciliation
from gpuledger.settings import Settings

HOUR_S = 3600

FROZEN, SETTLED, VALIDATED, SEALED, PUBLISHED, REOPENED = (
    "frozen", "settled", "validated", "sealed", "published", "reopened",
)  # fmt: skip
"""How far a close has come, as ``warehouse.close`` says it."""

Compare = Callable[[], Reconciliation]
"""Compares the ledger with the scheduler's own record, now."""


class Verdict(NamedTuple):
    """What a gate says of the rows of a statement.

    Args:
        checks: How many expectations there are.
        findings: Those that do not hold, in words.
    """

    checks: int
    findings: Sequence[str]


Gate = Callable[[Place], Verdict]
"""Validates the rows of a statement."""


class Stopped(Refused):
    """A close found what must not be sealed; nothing is lost, and the next run goes on from there.

    Args:
        message: At which step, and why.
        findings: What was found, a line each.
        hint: What a person can do about it.
    """

    def __init__(self, message: str, findings: Sequence[str], *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.findings = tuple(findings)


@dataclass(frozen=True, slots=True)
class Closer:
    """Who closes which period, and where things are.

    Args:
        engine: The database.
        cluster: The cluster.
        period: The budget period.
        by: Who closes it.
        clock: Says what time it is.
        default: The calendar before the organisation has set one.
        root: The folder of all closes.
        grace_s: How long after the period's end silent sources are waited for.
    """

    engine: sa.Engine
    cluster: str
    period: str
    by: str
    clock: Clock
    default: Calendar
    root: Path
    grace_s: int = 0

    def calendar(self, connection: Reader | Writer) -> Calendar:
        """Return the organisation's calendar."""
        return queries.calendar(connection, self.default)

    def place(self, version: int) -> Place:
        """Return a version of the close."""
        return Place(self.cluster, self.period, version)

    def folder(self, version: int) -> Path:
        """Return the folder of a version."""
        return files.folder_of(self.root, self.cluster, self.period, version)


def closer_by(
    config: Settings, engine: sa.Engine, cluster: str, period: str, by: str, *, grace_hours: int | None = None
) -> Closer:
    """Return who closes a period now, as the settings say.

    Args:
        config: The settings.
        engine: The database.
        cluster: The cluster.
        period: The budget period.
        by: Who closes it.
        grace_hours: How many hours after the period's end silent sources are waited for; as the settings say unless
            given.
    """
    hours = config.close_grace_hours if grace_hours is None else grace_hours
    return Closer(
        engine=engine,
        cluster=cluster,
        period=period,
        by=by,
        clock=SystemClock(),
        default=config.calendar,
        root=config.closes_folder,
        grace_s=hours * HOUR_S,
    )


def check(closer: Closer) -> CloseRows | None:
    """Look whether the close can be begun; return the one that was begun already and holds, None before.

    Raises:
        NotFound: When the cluster has no book.
        Refused: When the period is not over, or an earlier one is still open.
        Unavailable: When a source may still tell of the period.
    """
    with reading(closer.engine) as reader:
        queries.require_cluster(reader, closer.cluster)
        found = closes(reader, closer.cluster, closer.period)
        if found and found[-1].reopened_seq is None:
            return found[-1]
        calendar, now_s = closer.calendar(reader), seconds(closer.clock.now())
        closing.check_closing(reader, closer.cluster, closer.period, now_s=now_s, calendar=calendar)
        _wait_for_sources(reader, closer, now_s, calendar)
    return None


def freeze(closer: Closer, compare: Compare | None = None, *, accept: bool = False) -> CloseRows:
    """Charge open runs up to the period's end and shut it; return the close that is under way.

    The record is compared before anything is shut: what it has and the ledger has not still belongs into the period.

    Args:
        closer: Who closes what.
        compare: Compares the ledger with the scheduler's own record, where there is one.
        accept: Go on whatever differs from it.

    Raises:
        NotFound: When the cluster has no book.
        Stopped: When runs differ from the record without a cause.
        Refused: When the period is not over, or an earlier one is still open.
        Unavailable: When a source may still tell of the period.
    """
    if check(closer) is None:
        reconcile(closer, compare, accept=accept)

    def work(writer: Writer) -> CloseRows:
        shut = closing.freeze_period(
            writer,
            closer.cluster,
            closer.period,
            closer.by,
            clock=closer.clock,
            calendar=closer.calendar(writer),
        )
        rows = close_of(writer, closer.cluster, closer.period, shut.version)
        if not shut.repeated:
            store.note(writer, closer.place(rows.version), FROZEN)
        return rows

    return booked(closer.engine, closer.cluster, work, clock=closer.clock, people=[closer.by])


def reconcile(closer: Closer, compare: Compare | None, *, accept: bool = False) -> Reconciled | None:
    """Compare the book with the scheduler's own record; return what came of it, None without a record.

    Args:
        closer: Who closes what.
        compare: Compares; None where there is no record.
        accept: Go on whatever differs: it is told in the file.

    Raises:
        Stopped: When runs differ without a cause.
    """
    if compare is None:
        return None
    found = compare()
    told = summary(found, closer.cluster)
    if told.unexplained and not accept:
        findings = [
            f"{each.klass}: {each.key.workload or 'record'} {each.key.run} {each.message}"
            for each in of_cluster(found, closer.cluster)
            if not each.klass.is_explained
        ]
        raise Stopped(
            f"{told.unexplained} of {told.runs} runs differ from the scheduler's record without a cause",
            findings,
            hint="gpuledger reconcile slurm --repair mends what it can; --accept-differences declares them",
        )
    return told


def settle(closer: Closer, version: int, reconciled: Reconciled | None) -> CloseRows:
    """Let what is left expire or go on into the next period, and write the statement.

    Raises:
        Conflict: When somebody reopened the period meanwhile.
    """

    def work(writer: Writer) -> CloseRows:
        calendar = closer.calendar(writer)
        done = closing.settle_period(
            writer, closer.cluster, closer.period, version,
            clock=closer.clock, calendar=calendar, reconciled=reconciled,
        )  # fmt: skip
        open_periods(writer, closer.cluster, clock=closer.clock, calendar=calendar)
        rows = close_of(writer, closer.cluster, closer.period, version)
        stored = store.find(writer, closer.place(version))
        if not done.repeated or stored is None or stored.state == FROZEN:
            made = make(writer, closer.cluster, closer.period, version)
            store.write_statement(writer, closer.place(version), made.document)
            store.note(writer, closer.place(version), SETTLED)
        return rows

    return booked(closer.engine, closer.cluster, work, clock=closer.clock, people=[closer.by])


def validate(closer: Closer, version: int, gate: Gate | None) -> int:
    """Check what is to be sealed, and the rows of its statement; return how many expectations hold.

    Args:
        closer: Who closes what.
        version: The version of the close.
        gate: Validates the rows besides; None where nothing does.

    Raises:
        Stopped: When something does not hold.
    """
    place = closer.place(version)
    with reading(closer.engine) as reader:
        made = make(reader, closer.cluster, closer.period, version)
        stored = list(store.iter_lines(reader, place))
    findings = [finding.told() for finding in made.findings]
    if stored != [store.flat(line) for line in made.document.accounts]:
        findings.append("the statement in the warehouse is what the journal says: it is not")
    verdict = Verdict(0, ()) if gate is None else gate(place)
    findings += verdict.findings
    if findings:
        raise Stopped(
            f"version {version} of the close of {closer.period} of {closer.cluster} does not hold",
            findings,
            hint="gpuledger audit verify and rebuild --check say where; nothing was sealed",
        )
    if made.rows.digest is None:
        booked(
            closer.engine, None, lambda writer: store.note(writer, place, VALIDATED, checks=verdict.checks)
        )
    return verdict.checks


def seal(closer: Closer, version: int) -> str:
    """Write the digest of the close's file into the book; return it.

    Raises:
        Conflict: When somebody reopened the period meanwhile.
        Corrupt: When it was sealed with another digest: what it is made of has changed.
    """
    place = closer.place(version)
    with reading(closer.engine) as reader:
        made = make(reader, closer.cluster, closer.period, version)

    def work(writer: Writer) -> None:
        is_new = closing.seal_period(
            writer, closer.cluster, closer.period, version, made.digest,
            clock=closer.clock, calendar=closer.calendar(writer),
        )  # fmt: skip
        stored = store.find(writer, place)
        if is_new or stored is None or stored.document != made.content.decode():
            store.note(writer, place, SEALED, document=made.content.decode())

    booked(closer.engine, closer.cluster, work, clock=closer.clock)
    return made.digest


class Published(NamedTuple):
    """What a close left in its folder.

    Args:
        folder: The folder.
        names: The files.
        left_out: Files that were not made, and why.
    """

    folder: Path
    names: Sequence[str]
    left_out: Sequence[str]


def publish(closer: Closer, version: int) -> Published:
    """Write the files of a sealed close.

    Raises:
        Refused: When it is not sealed, or no longer what was sealed.
        Unavailable: When they cannot be written.
    """
    place = closer.place(version)
    with reading(closer.engine) as reader:
        made = make(reader, closer.cluster, closer.period, version)
    _require_sealed(made, place)
    rendered = render(made.content, made.document)
    folder = closer.folder(version)
    files.write(folder, rendered.files)
    booked(
        closer.engine,
        None,
        lambda writer: store.note(writer, place, PUBLISHED, published_at=closer.clock.now()),
    )
    return Published(folder, [*rendered.files, files.SUMS], rendered.left_out)


def reopen(closer: Closer, reason: str) -> int:
    """Let a closed period take bookings again; return the version that no longer holds.

    Raises:
        NotFound: When the cluster has no book.
        Refused: When the period is not closed, or no reason is given.
    """

    def work(writer: Writer) -> int:
        version = closing.reopen_period(
            writer, closer.cluster, closer.period, closer.by, reason,
            clock=closer.clock, calendar=closer.calendar(writer),
        )  # fmt: skip
        if close_of(writer, closer.cluster, closer.period, version).closing.frozen is not None:
            store.note(writer, closer.place(version), REOPENED)
        return version

    return booked(closer.engine, closer.cluster, work, clock=closer.clock, people=[closer.by])


def _require_sealed(made: Made, place: Place) -> None:
    if made.rows.digest != made.digest:
        what = "is not sealed" if made.rows.digest is None else "is no longer what was sealed"
        raise Refused(
            f"version {place.version} of the close of {place.period} of {place.cluster} {what}",
            hint=f"gpuledger close verify {place.period} --cluster {place.cluster} says what differs",
        )


def _wait_for_sources(reader: Reader, closer: Closer, now_s: int, calendar: Calendar) -> None:
    """A source that told of the period and not up to its end may still tell more; one that ended before may not."""
    start_s, end_s = calendar.period_bounds_s(closer.period)
    if now_s >= end_s + closer.grace_s:
        return
    for source, told_at in told_until(reader, closer.cluster):
        if instant(start_s) <= told_at < instant(end_s):
            raise Unavailable(
                f"{source} has told of {closer.cluster} until {iso(told_at)}, and {closer.period} ends"
                f" {iso(instant(end_s))}",
                hint=f"it is waited for until {iso(instant(end_s + closer.grace_s))}; --grace 0 closes without it",
            )
