"""What the time since a book's last tick adds to its balances: open runs go on, holds drain and expire.

Reads add it, so that a balance never waits for a job to end or for the next tick.
"""

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpuledger.database.engine import Reader, Writer
from gpuledger.kernel.calendar import Calendar, Slice
from gpuledger.kernel.clock import seconds
from gpuledger.ledger import queries
from gpuledger.ledger.charges import Booking
from gpuledger.ledger.copying import driver
from gpuledger.ledger.rates import UNWEIGHTED, Rates

Place = tuple[str, str, str]
"""Book, account, period."""

Dated = tuple[str, str, dt.date]
"""Book, account, the organisation's day."""


@dataclass(slots=True)
class Remainder:
    """What is not posted yet; weighted."""

    charged: int = 0
    held: int = 0
    unallocated: int = 0


def remainder(
    reader: Reader | Writer,
    cluster: str | None,
    now_s: int,
    as_of: queries.AsOf,
    calendar: Calendar,
    *,
    as_known: bool = False,
) -> dict[Place, Remainder]:
    """Return what runs that go on, and holds that lapse, add to each balance up to an instant.

    Args:
        reader: A snapshot.
        cluster: One cluster, or all.
        now_s: Up to when, seconds since the epoch.
        as_of: Recorded time: what the book said then; now unless given.
        calendar: The organisation's days.
        as_known: Into the period that it belongs to, shut or not; else into the one that it would be booked into.
    """
    shut = {} if as_known else queries.shut_periods(reader, as_of)
    bookings = {book: Booking(calendar, periods) for book, periods in shut.items()}
    return by_period(open_time(reader, cluster, now_s, as_of, calendar), bookings, calendar)


def by_period(
    by_day: Mapping[Dated, Remainder], bookings: Mapping[str, Booking], calendar: Calendar
) -> dict[Place, Remainder]:
    """Sum up days by the period that each would be booked into; books without a booking have no period that is shut."""
    found: dict[Place, Remainder] = {}
    for (book, account, day), part in by_day.items():
        period = bookings.get(book, Booking(calendar)).period(day)
        whole = found.setdefault((book, account, period), Remainder())
        whole.charged += part.charged
        whole.held += part.held
        whole.unallocated += part.unallocated
    return found


def open_time(
    reader: Reader | Writer,
    cluster: str | None,
    now_s: int,
    as_of: queries.AsOf,
    calendar: Calendar,
    *,
    ticks: Mapping[str, int] | None = None,
) -> dict[Dated, Remainder]:
    """Return what runs that go on, and holds that lapse, take from each account by day; as ``remainder`` otherwise.

    Args:
        reader: A snapshot.
        cluster: One cluster, or all.
        now_s: Up to when, seconds since the epoch.
        as_of: Recorded time: what the book said then; now unless given.
        calendar: The organisation's days.
        ticks: Book -> its newest tick; read unless given.
    """
    found: dict[Dated, Remainder] = {}
    cards = queries.rate_cards(reader, as_of, cluster)
    if ticks is None:
        ticks = queries.ticks(reader, as_of)
    in_force, values = queries.in_force(reader, as_of)
    values = {"cluster": cluster, "now": now_s, **values}
    windows = _windows(reader, in_force, values)
    rows = driver(reader).execute(
        "SELECT book, workload, run, account, class, gpus_milli, gpu_model, from_at, capped_at"
        f" FROM ledger.segments AS s WHERE {in_force} AND to_at IS NULL"
        " AND (%(cluster)s::text IS NULL OR book = %(cluster)s)",
        values,
    )
    for book, workload, run, account, klass, gpus_milli, model, from_at, capped_at in rows:
        start_s = max(seconds(from_at), ticks.get(book, 0))
        end_s = now_s if capped_at is None else min(now_s, seconds(capped_at))
        drained = windows.get((book, workload, run), []) if klass == "allocated" else []
        for piece in calendar.slices(start_s, end_s):
            card = cards.get(book, UNWEIGHTED)
            used = card.weighted(model, gpus_milli, piece.start_s, piece.end_s)
            part = found.setdefault((book, account, piece.day), Remainder())
            if klass == "allocated":
                part.charged += used
                part.held -= _drains(piece, gpus_milli, model, card, drained)
            else:
                part.unallocated += used
    for place, held in _expired(reader, in_force, values, cards, ticks, calendar):
        found.setdefault(place, Remainder()).held -= held
    return found


def _drains(
    piece: Slice, gpus_milli: int, model: str | None, card: Rates, drained: list[tuple[int, int]]
) -> int:
    """Return the part of what is used in a piece of a day that drains a hold."""
    return sum(
        card.weighted(model, gpus_milli, max(piece.start_s, from_s), min(piece.end_s, to_s))
        for from_s, to_s in drained
        if max(piece.start_s, from_s) < min(piece.end_s, to_s)
    )


def _windows(
    reader: Reader | Writer, in_force: str, values: dict[str, object]
) -> dict[tuple[str, str, str], list[tuple[int, int]]]:
    """Return (book, workload, run) -> the windows of time that are paid from a hold."""
    rows = driver(reader).execute(
        f"SELECT book, workload, run, from_at, to_at FROM ledger.holds AS s WHERE {in_force} AND run IS NOT NULL"
        " AND (%(cluster)s::text IS NULL OR book = %(cluster)s)",
        values,
    )
    found: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
    for book, workload, run, from_at, to_at in rows:
        found.setdefault((book, workload, run), []).append((seconds(from_at), seconds(to_at)))
    return found


def _expired(
    reader: Reader | Writer,
    in_force: str,
    values: dict[str, object],
    cards: dict[str, Rates],
    ticks: Mapping[str, int],
    calendar: Calendar,
) -> Iterator[tuple[Dated, int]]:
    """Yield (book, account, day) and what was set aside for a start that did not come; the next tick posts it."""
    rows = driver(reader).execute(
        "SELECT book, account, gpus_milli, gpu_model, from_at, to_at, expires_at FROM ledger.holds AS s"
        f" WHERE {in_force} AND run IS NULL AND expires_at <= to_timestamp(%(now)s)"
        " AND (%(cluster)s::text IS NULL OR book = %(cluster)s)",
        values,
    )
    for book, account, gpus_milli, model, from_at, to_at, expires_at in rows.fetchall():
        if seconds(expires_at) <= ticks.get(book, 0):
            continue
        card = cards.get(book, UNWEIGHTED)
        for piece in calendar.slices(seconds(from_at), seconds(to_at)):
            yield (book, account, piece.day), card.weighted(model, gpus_milli, piece.start_s, piece.end_s)
