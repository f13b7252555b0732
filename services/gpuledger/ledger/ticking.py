"""The book's clock: once an hour lost ends are found, the hour's telemetry is sealed, and the clock moves on.

Credits about which something became known are looked at again. What nothing was learned of is not looked at: a tick
says up to which row it looked. A run whose charges no column would hold does not stop it (``overflowing``).
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.closing import LedgerTicked
from gpuledger.events.envelope import Event, make
from gpuledger.events.workload import Ended
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, instant, iso, seconds
from gpuledger.kernel.errors import Refused, TooLarge
from gpuledger.ledger import overflowing, queries, sealing
from gpuledger.ledger.accrual import Span
from gpuledger.ledger.append import append
from gpuledger.ledger.charges import Booking
from gpuledger.ledger.copying import driver
from gpuledger.ledger.evidence import lost_end_events
from gpuledger.ledger.incident_review import events as revised
from gpuledger.ledger.incident_review import review, touched
from gpuledger.ledger.rates import UNWEIGHTED
from gpuledger.ledger.sealing import HOUR_S, LOOK_BACK_S, SOURCE
from gpuledger.ledger.store import lock_book, shut_periods
from gpuledger.ledger.suspects import Looked


@dataclass(frozen=True, slots=True)
class Ticked:
    """What a tick did.

    Args:
        cluster: The cluster, which is also the book.
        ticked_s: Where the book's clock stands now, in seconds since the epoch.
        lost_ends: How many runs got an estimated end.
        revised_credits: Of how many credits something else is concluded.
        sealed_hours: How many hours of telemetry were sealed, first or anew.
        put_aside: How many runs were closed where the tick before stood, because no column holds what they would cost.
        repeated: The clock stood there or later before, and nothing was done.
    """

    cluster: str
    ticked_s: int
    lost_ends: int = 0
    revised_credits: int = 0
    sealed_hours: int = 0
    put_aside: int = 0
    repeated: bool = False


def tick(writer: Writer, cluster: str, at_s: int, *, clock: Clock, calendar: Calendar) -> Ticked:
    """Move a book's clock to a full hour: estimate lost ends, revise credits, seal telemetry, then tick, in one batch.

    Args:
        writer: The transaction; it takes the book's lock and keeps it.
        cluster: The cluster, which is also the book.
        at_s: Where to, in seconds since the epoch, floored to the hour.
        clock: Says what the present is.
        calendar: Cuts days and periods of what is posted.

    Raises:
        Refused: When the instant lies in the future, or before 1970.
    """
    _require_past(cluster, at_s, clock)
    at_s -= at_s % HOUR_S
    stale = stale_hours(writer, cluster, at_s)
    return tick_at(writer, cluster, at_s, stale, clock=clock, calendar=calendar)


def tick_at(
    writer: Writer, cluster: str, at_s: int, stale: Sequence[int], *, clock: Clock, calendar: Calendar
) -> Ticked:
    """Do what a tick does, at an instant that need not be a full hour: periods of some zones end at half past.

    Args:
        writer: The transaction; it takes the book's lock and keeps it.
        cluster: The cluster, which is also the book.
        at_s: Where to, in seconds since the epoch.
        stale: What ``stale_hours`` found, best before the book was locked.
        clock: Says what the present is.
        calendar: Cuts days and periods of what is posted.

    Raises:
        Refused: When the instant lies in the future, or before 1970.
    """
    _require_past(cluster, at_s, clock)
    head = lock_book(writer, cluster)
    last_s = head.ticked_s
    if last_s is not None and last_s >= at_s:
        return Ticked(cluster, last_s, repeated=True)
    since_s = _since_s(last_s)
    looked = Looked(_looked_seq(writer, cluster), last_s or 0)
    ends = lost_end_events(writer, cluster, as_of_s=at_s, since_s=since_s, looked=looked)
    seals = _seals(writer, cluster, stale)
    revisions = review(writer, cluster, touched(writer, cluster, looked.seq))
    found = [*ends, *revised(cluster, revisions), *seals]
    put_aside = _move(
        writer, cluster, found, tick_event(cluster, at_s, head.last_seq), clock=clock, calendar=calendar
    )
    return Ticked(cluster, at_s, len(ends), len(revisions), len(seals), put_aside)


def stale_hours(connection: Reader | Writer, cluster: str, at_s: int) -> list[int]:
    """Return the ends of the hours that a tick seals; none when the clock stands there or later.

    A week of samples is looked through before others are made to wait; what comes meanwhile is the next tick's.
    """
    before_s = queries.ticks(connection).get(cluster)
    if (before_s or 0) >= at_s:
        return []
    return sealing.stale_hours(connection, cluster, at_s, at_s - _since_s(before_s))


def _require_past(cluster: str, at_s: int, clock: Clock) -> None:
    if not 0 <= at_s <= seconds(clock.now()):
        raise Refused(
            f"the clock of {cluster} cannot be moved to {at_s} ({_shown(at_s)}): it keeps to what has been",
            hint="name an instant since 1970 that is not in the future, or none for the present",
        )


def _move(
    writer: Writer, cluster: str, found: Sequence[Event], ticked: Event, *, clock: Clock, calendar: Calendar
) -> int:
    """Append what was found and a tick; return how many runs were put aside so that it could be booked."""
    last_s = lock_book(writer, cluster).ticked_s
    try:
        with writer.begin_nested():
            append(writer, cluster, [*found, ticked], clock=clock, calendar=calendar)
    except TooLarge:
        booking = Booking(calendar, shut_periods(writer, cluster))
        card = queries.rate_cards(writer).get(cluster, UNWEIGHTED)
        ends = overflowing.ends(writer, cluster, Span(last_s, ticked.at_s), booking, card)
        if not ends:
            raise
        closed = {_run_of(end) for end in ends}
        others = [event for event in found if _run_of(event) not in closed]
        append(writer, cluster, [*others, *ends, ticked], clock=clock, calendar=calendar)
        return len(ends)
    return 0


def _run_of(event: Event) -> tuple[str, str | None] | None:
    return (event.data.workload, event.data.run) if isinstance(event.data, Ended) else None


def _looked_seq(writer: Writer, cluster: str) -> int:
    """Return up to which row the newest tick looked; 0 when none has said so."""
    row = driver(writer).execute(
        "SELECT (body->>'after_seq')::bigint FROM ledger.journal WHERE book = %s AND workload IS NULL"
        " AND type = 'ledger.ticked' AND body->>'after_seq' IS NOT NULL ORDER BY seq DESC LIMIT 1",
        (cluster,),
    ).fetchone()  # fmt: skip
    return row[0] if row else 0


def _shown(at_s: int) -> str:
    try:
        return iso(instant(at_s))
    except (OverflowError, ValueError):
        return "no date"


def _since_s(last_s: int | None) -> int:
    """Return from when on a tick looks: late samples count for a week; before the first nothing was looked at yet."""
    return 0 if last_s is None else max(0, last_s - LOOK_BACK_S)


def _seals(writer: Writer, cluster: str, hours: Sequence[int]) -> list[Event]:
    facts = ((end_s, sealing.sealed(writer, cluster, end_s)) for end_s in hours)
    return [sealing.seal_event(fact, end_s) for end_s, fact in facts if fact is not None]


def tick_event(cluster: str, at_s: int, after_seq: int | None = None) -> Event:
    """Return a tick as an event; an instant is ticked once."""
    id_ = f"tick/{cluster}/{iso(instant(at_s))}"
    return make(id=id_, source=SOURCE, at_s=at_s, data=LedgerTicked(cluster=cluster, after_seq=after_seq))[0]


def catch_up(writer: Writer, cluster: str, now_s: int, *, clock: Clock, calendar: Calendar) -> None:
    """Tick when a lot has lapsed since the newest tick: what is left of it is there no longer to promise or to give."""
    ticked_s = lock_book(writer, cluster).ticked_s
    row = driver(writer).execute(
        "SELECT 1 FROM ledger.lots WHERE book = %s AND expires_on > %s AND expires_on <= %s LIMIT 1",
        (cluster, dt.date.min if ticked_s is None else calendar.day_of(ticked_s), calendar.day_of(now_s)),
    ).fetchone()  # fmt: skip
    if row is not None:
        id_ = f"lapse/{cluster}/{iso(instant(now_s))}"
        event, _ = make(id=id_, source=SOURCE, at_s=now_s, data=LedgerTicked(cluster=cluster))
        _move(writer, cluster, (), event, clock=clock, calendar=calendar)
