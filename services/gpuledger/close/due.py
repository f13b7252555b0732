"""Which periods are to be closed now, for whoever closes by the clock."""

from collections.abc import Callable
from typing import NamedTuple

import sqlalchemy as sa

from gpuledger.close import steps
from gpuledger.close.steps import Closer
from gpuledger.database.engine import Reader, reading
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, instant, iso, seconds
from gpuledger.kernel.errors import Refused, Unavailable
from gpuledger.ledger import queries
from gpuledger.ledger.close_rows import closes
from gpuledger.ledger.close_sums import budgeted_periods


class Due(NamedTuple):
    """What is to be closed now, and what is not and why.

    Args:
        now: (Cluster, period) of each: of a cluster the earliest, because periods close in order.
        waiting: Why each other cluster waits, in words.
    """

    now: list[tuple[str, str]]
    waiting: list[str]


def due(engine: sa.Engine, clock: Clock, default: Calendar, closer_of: Callable[[str, str], Closer]) -> Due:
    """Return what is to be closed now.

    A period that somebody reopened waits for whoever did: it takes bookings until it is closed by hand.

    Args:
        engine: The database.
        clock: Says what time it is.
        default: The calendar before the organisation has set one.
        closer_of: Returns who closes a period of a cluster.

    Raises:
        Unavailable: When the database cannot be reached.
    """
    found = Due([], [])
    with reading(engine) as reader:
        calendar, now_s = queries.calendar(reader, default), seconds(clock.now())
        candidates = {
            cluster: _earliest(reader, cluster, calendar, now_s) for cluster in queries.clusters(reader)
        }
    for cluster, (period, why) in candidates.items():
        if period is None:
            found.waiting.append(f"{cluster}: {why}")
            continue
        try:
            steps.check(closer_of(cluster, period))
        except (Refused, Unavailable) as error:
            found.waiting.append(f"{cluster}: {error.message}")
        else:
            found.now.append((cluster, period))
    return found


def _earliest(reader: Reader, cluster: str, calendar: Calendar, now_s: int) -> tuple[str | None, str]:
    """Return the earliest period that is over and not sealed; None, and why, when there is none."""
    for period in budgeted_periods(reader, cluster):
        _, end_s = calendar.period_bounds_s(period)
        if end_s > now_s:
            return None, f"{period} ends {iso(instant(end_s))}"
        told = closes(reader, cluster, period)
        if not told:
            return period, ""
        newest = told[-1]
        if newest.reopened_seq is not None:
            return None, f"{period} was reopened, and is closed by hand"
        if newest.digest is None and newest.closing.frozen is not None:
            return period, ""
    return None, "nothing is budgeted that is not closed"
