"""Closing a budget period, and opening it again.

A close is three rows: ``period.closing`` fixes what it is made of - from then on nothing is booked into the period -,
``period.closed`` settles it: what was left expires or goes on into the next period, and ``period.sealed`` says what
the digest of its file is. Whoever finds a close that stopped between two of them goes on from there; of two closers
one closes and the other is told so. Each row names the version that it belongs to: a closer that was paused while
somebody reopened the period writes nothing any more.
"""

from typing import NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.events import closing as events
from gpuledger.events.envelope import Event, make
from gpuledger.events.registry import Fact
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, instant, iso, seconds
from gpuledger.kernel.errors import Conflict, Corrupt, Refused
from gpuledger.ledger import queries, ticking
from gpuledger.ledger.append import append
from gpuledger.ledger.close_rows import closes
from gpuledger.ledger.copying import driver
from gpuledger.ledger.freezing import frozen
from gpuledger.ledger.store import lock_book

SOURCE = "gpuledger/periods"

OPEN, CLOSED = "open", "closed"
"""States of a period; between the two it is ``closing``."""


class Close(NamedTuple):
    """What became of a close.

    Args:
        version: 1 for the first close of the period, one more after each reopening.
        closing_seq: The row that fixed what it is made of.
        closed_seq: The row that settled it.
        repeated: Whether it was closed before.
    """

    cluster: str
    period: str
    version: int
    closing_seq: int
    closed_seq: int
    repeated: bool


class _State(NamedTuple):
    state: str = OPEN
    version: int = 0
    closing_seq: int | None = None
    closed_seq: int | None = None


def freeze_period(
    writer: Writer, cluster: str, period: str, by: str, *, clock: Clock, calendar: Calendar
) -> Close:
    """Charge open runs up to the end of a period and shut it: the rows up to here are what its close is made of.

    One that is shut stays as it is.

    Args:
        writer: A transaction of its own; the caller commits it.
        cluster: The cluster.
        period: The budget period.
        by: Who closes it.
        clock: Says whether the period is over.
        calendar: The organisation's days.

    Raises:
        NotFound: When the cluster has no book.
        Refused: When the period is not over, or an earlier one is still open.
    """
    queries.require_cluster(writer, cluster)
    _, end_s = calendar.period_bounds_s(period)
    stale = ticking.stale_hours(writer, cluster, end_s)
    lock_book(writer, cluster)
    found = _state(writer, cluster, period)
    if found.state != OPEN:
        return _closed(writer, cluster, period, repeated=True)
    check_closing(writer, cluster, period, now_s=seconds(clock.now()), calendar=calendar)
    # First what an hourly tick would find: ends that were lost, and samples that are not sealed.
    ticking.tick_at(writer, cluster, end_s, stale, clock=clock, calendar=calendar)
    version = found.version + 1
    fact = events.PeriodClosing(
        cluster=cluster, period=period, version=version, by=by, frozen=frozen(writer, period, calendar)
    )
    event = _event(f"closing/{period}/{version}", end_s, fact)
    append(writer, cluster, [event], clock=clock, calendar=calendar)
    return _closed(writer, cluster, period, repeated=False)


def settle_period(
    writer: Writer,
    cluster: str,
    period: str,
    version: int,
    *,
    clock: Clock,
    calendar: Calendar,
    reconciled: events.Reconciled | None = None,
) -> Close:
    """Settle a period that is shut: what was left expires or goes on into the next.

    One that is settled stays as it is.

    Args:
        writer: A transaction of its own; the caller commits it.
        cluster: The cluster.
        period: The budget period.
        version: That of its closing, as whoever settles it knows it.
        clock: Says what time it is.
        calendar: The organisation's days.
        reconciled: What came of the comparison with the scheduler's record, where there was one.

    Raises:
        Conflict: When it is no longer the close that is under way: somebody reopened the period meanwhile.
    """
    _, end_s = calendar.period_bounds_s(period)
    lock_book(writer, cluster)
    found = _require_version(writer, cluster, period, version)
    if found.state == CLOSED:
        return _closed(writer, cluster, period, repeated=True)
    # Closes that were begun before they froze anything charged runs here.
    stale = ticking.stale_hours(writer, cluster, end_s)
    ticking.tick_at(writer, cluster, end_s, stale, clock=clock, calendar=calendar)
    fact = events.PeriodClosed(
        cluster=cluster,
        period=period,
        version=version,
        closing_seq=found.closing_seq or 0,
        reconciled=reconciled,
    )
    event = _event(f"closed/{period}/{version}", end_s, fact)
    append(writer, cluster, [event], clock=clock, calendar=calendar)
    return _closed(writer, cluster, period, repeated=False)


def seal_period(
    writer: Writer, cluster: str, period: str, version: int, digest: str, *, clock: Clock, calendar: Calendar
) -> bool:
    """Write down the digest of a close's file; return whether that is new.

    Raises:
        Conflict: When it is no longer the close that holds.
        Corrupt: When it was sealed with another digest: what it is made of has changed.
    """
    _, end_s = calendar.period_bounds_s(period)
    lock_book(writer, cluster)
    found = _require_version(writer, cluster, period, version)
    if found.state != CLOSED or found.closing_seq is None:
        raise Conflict(f"{period} of {cluster} is {found.state}, not closed", hint="run the close again")
    sealed = next((c for c in closes(writer, cluster, period) if c.version == version), None)
    if sealed is not None and sealed.digest is not None:
        if sealed.digest != digest:
            raise Corrupt(
                f"version {version} of the close of {period} of {cluster} was sealed as {sealed.digest} in row"
                f" {sealed.sealed_seq}, and what it is made of gives {digest}",
                hint=f"gpuledger close verify {period} --cluster {cluster} says what has changed",
            )
        return False
    fact = events.PeriodSealed(
        cluster=cluster, period=period, version=version, closing_seq=found.closing_seq, digest=digest
    )
    event = _event(f"sealed/{period}/{version}", end_s, fact)
    append(writer, cluster, [event], clock=clock, calendar=calendar)
    return True


def close_period(
    writer: Writer, cluster: str, period: str, by: str, *, clock: Clock, calendar: Calendar
) -> Close:
    """Freeze and settle a period in one transaction; see there.

    Raises:
        NotFound: When the cluster has no book.
        Refused: When the period is not over, or an earlier one is still open.
    """
    shut = freeze_period(writer, cluster, period, by, clock=clock, calendar=calendar)
    return settle_period(writer, cluster, period, shut.version, clock=clock, calendar=calendar)


def check_closing(
    connection: Reader | Writer, cluster: str, period: str, *, now_s: int, calendar: Calendar
) -> None:
    """Refuse to close a period that is not over, or before an earlier one.

    Raises:
        Refused: When it cannot be closed now; says what is in the way.
    """
    _, end_s = calendar.period_bounds_s(period)
    if now_s < end_s:
        raise Refused(f"{period} is not over before {iso(instant(end_s))}", hint="close it then")
    row = driver(connection).execute(
        "SELECT min(period) FROM ledger.balances AS b WHERE book = %s AND period < %s AND pot = 'budget'"
        " AND commodity = 'gpu_ms_weighted' AND NOT EXISTS (SELECT FROM ledger.periods AS p"
        " WHERE p.book = b.book AND p.period = b.period AND p.state = 'closed')",
        (cluster, period),
    ).fetchone()  # fmt: skip
    if row is not None and row[0] is not None:
        raise Refused(
            f"{row[0]} of {cluster} is still open, and what it leaves goes on into later periods",
            hint=f"gpuledger close run {row[0]} --cluster {cluster} comes first",
        )


def reopen_period(
    writer: Writer, cluster: str, period: str, by: str, reason: str, *, clock: Clock, calendar: Calendar
) -> int:
    """Let a closed period take bookings again; return the version of the close that no longer holds.

    What its close expired and carried over is taken back in the same transaction. A close that is still under way is
    called off.

    Raises:
        NotFound: When the cluster has no book.
        Refused: When the period is not closed, or no reason is given.
    """
    queries.require_cluster(writer, cluster)
    lock_book(writer, cluster)
    version = check_reopening(writer, cluster, period, reason)
    fact = events.PeriodReopened(cluster=cluster, period=period, version=version, by=by, reason=reason)
    event = _event(f"reopened/{period}/{version}", seconds(clock.now()), fact)
    append(writer, cluster, [event], clock=clock, calendar=calendar)
    return version


def check_reopening(connection: Reader | Writer, cluster: str, period: str, reason: str) -> int:
    """Refuse to reopen what is not closed, or without a reason; return the version of the close.

    Raises:
        Refused: When it cannot be reopened; says why.
    """
    if not reason.strip():
        raise Refused("a reopening needs a reason", hint="say why: it is kept with the order")
    found = _state(connection, cluster, period)
    if found.state == OPEN:
        raise Refused(
            f"{period} of {cluster} is {found.state}, not closed",
            hint="gpuledger period list shows which are",
        )
    return found.version


def _require_version(writer: Writer, cluster: str, period: str, version: int) -> _State:
    found = _state(writer, cluster, period)
    if found.version != version or found.state == OPEN:
        raise Conflict(
            f"version {version} of the close of {period} of {cluster} is over: it is {found.state}, version"
            f" {found.version}",
            hint="somebody reopened the period; look at it and close it again",
        )
    return found


def _event(id_: str, at_s: int, fact: Fact) -> Event:
    return make(id=id_, source=SOURCE, at_s=at_s, data=fact)[0]


def _state(connection: Reader | Writer, cluster: str, period: str) -> _State:
    row = driver(connection).execute(
        "SELECT state, version, closing_seq, closed_seq FROM ledger.periods WHERE book = %s AND period = %s",
        (cluster, period),
    ).fetchone()  # fmt: skip
    return _State(*row) if row else _State()


def _closed(connection: Writer, cluster: str, period: str, *, repeated: bool) -> Close:
    found = _state(connection, cluster, period)
    return Close(
        cluster, period, found.version, found.closing_seq or 0, found.closed_seq or 0, repeated=repeated
    )
