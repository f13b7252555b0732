"""Closing a budget period, and opening it again.

A close is two rows: ``period.closing`` fixes what it is made of - from then on nothing is booked into the period -
and ``period.closed`` settles it: what was left expires or goes on into the next period. Whoever finds a close that
stopped between the two goes on from there; of two closers one closes and the other is told so.
"""

from typing import NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.events import closing as events
from gpuledger.events.envelope import Event, make
from gpuledger.events.registry import Fact
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, instant, iso, seconds
from gpuledger.kernel.errors import Refused
from gpuledger.ledger import queries, ticking
from gpuledger.ledger.append import append
from gpuledger.ledger.copying import driver
from gpuledger.ledger.store import lock_book

SOURCE = "gpuledger/periods"


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
    state: str = "open"
    version: int = 0
    closing_seq: int | None = None
    closed_seq: int | None = None


def close_period(
    writer: Writer, cluster: str, period: str, by: str, *, clock: Clock, calendar: Calendar
) -> Close:
    """Close a period of a cluster: charge open runs up to its end, shut it, settle it.

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
    if found.state == "closed":
        return _closed(writer, cluster, period, repeated=True)
    check_closing(writer, cluster, period, now_s=seconds(clock.now()), calendar=calendar)
    version = found.version if found.state == "closing" else found.version + 1
    # First what an hourly tick would find: ends that were lost, and samples that are not sealed.
    ticking.tick_at(writer, cluster, end_s, stale, clock=clock, calendar=calendar)
    head = lock_book(writer, cluster)
    facts: list[tuple[str, Fact]] = []
    if found.state != "closing":
        fixed = events.PeriodClosing(cluster=cluster, period=period, version=version, by=by)
        facts.append((f"closing/{period}/{version}", fixed))
        closing_seq = head.last_seq + len(facts)
    else:
        closing_seq = found.closing_seq or 0
    settled = events.PeriodClosed(cluster=cluster, period=period, version=version, closing_seq=closing_seq)
    facts.append((f"closed/{period}/{version}", settled))
    append(writer, cluster, [_event(id_, end_s, fact) for id_, fact in facts], clock=clock, calendar=calendar)
    return _closed(writer, cluster, period, repeated=False)


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

    What its close expired and carried over is taken back in the same transaction.

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
    if found.state != "closed":
        raise Refused(
            f"{period} of {cluster} is {found.state}, not closed",
            hint="gpuledger period list shows which are",
        )
    return found.version


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
