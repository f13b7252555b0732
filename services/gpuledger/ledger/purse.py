"""What hard accounts can still promise: their balances, and what is to come into periods that are not settled yet.

Grants of a period come with its opening, and what the period before leaves comes with its close, which may be days
after the edge. A run that lives on either is not landed at midnight for that: what would come if both came now counts.
"""

import datetime as dt
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from gpuledger.database.engine import Writer
from gpuledger.kernel.accounts import lineage
from gpuledger.kernel.amounts import WEIGHT_ONE, gpu_hours
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant
from gpuledger.ledger import periods, queries, settled, settlement
from gpuledger.ledger.balances import Rooms
from gpuledger.ledger.rates import UNWEIGHTED, Rates
from gpuledger.ledger.settled import Touched


class Need(NamedTuple):
    """GPU-time that is to be set aside: who pays, for what, from when to when (seconds since the epoch)."""

    account: str
    gpus_milli: int
    gpu_model: str | None
    span: tuple[int, int]


class Purse:
    """What is left to promise to hard accounts, and those below them, while several ask one after the other.

    Args:
        writer: The transaction that holds the book's lock.
        cluster: The cluster.
        now_s: The present.
        calendar: The organisation's days.
    """

    def __init__(self, writer: Writer, cluster: str, now_s: int, calendar: Calendar) -> None:
        self._writer, self._cluster, self._calendar = writer, cluster, calendar
        self._hard = queries.hard_accounts(writer, instant(now_s))
        self._card = queries.rate_cards(writer).get(cluster, UNWEIGHTED)
        self._rooms = Rooms(writer, cluster, now_s, calendar)
        self._carried: dict[tuple[str, str, dt.date], int] = {}
        self._taken: dict[tuple[str, str], Counter[dt.date]] = {}

    def shortfall(self, need: Need) -> str | None:
        """Take what a hold needs, or return why it cannot be paid for.

        Each period that the span touches must have room for its part, what is still to come into it counted in, and
        what lapses at a midnight within the span pays for nothing after it. Nothing is taken when any part is lacking.
        """
        hard = self._hard & set(lineage(need.account))
        if not hard:
            return None
        parts = _by_period(need, self._card, self._calendar)
        earlier = 0
        for period, days in parts.items():
            weighted = sum(days.values())
            to_come = self._to_be_granted(need.account, period)
            to_come += _less(self._to_be_carried(need.account, period, max(days)), earlier) // WEIGHT_ONE
            found = self._rooms.left(need.account, period, hard, to_come)
            left = found.available_gpu_ms
            if need.account in hard and (lacking := self._uncovered(need.account, period, days)):
                left = min(left, (weighted - lacking) // WEIGHT_ONE + to_come)
            earlier += weighted
            if weighted and left * WEIGHT_ONE < weighted:
                return (
                    f"{found.account} is hard and has {gpu_hours(left)} GPU-hours left in {period};"
                    f" {gpu_hours(-(-weighted // WEIGHT_ONE))} are needed"
                )
        for period, days in parts.items():
            self._take(need.account, period, days)
        return None

    def _take(self, account: str, period: str, days: Mapping[dt.date, int]) -> None:
        weighted = sum(days.values())
        self._rooms.take(account, period, -(-weighted // WEIGHT_ONE))
        self._taken.setdefault((account, period), Counter()).update(days)
        for (owner, later, day), carried in self._carried.items():
            if owner == account and later > period:
                self._carried[owner, later, day] = _less(carried, weighted)

    def _uncovered(self, account: str, period: str, days: Mapping[dt.date, int]) -> int:
        """Return how much no lot pays for because one lapses at a midnight between the days, in gpu_ms x per mille."""
        if not settled.has_lapse(self._writer, self._cluster, account, min(days), max(days)):
            return 0
        more = self._taken.get((account, period), Counter()) + Counter(days)
        return settlement.uncovered(
            self._writer, self._cluster, self._calendar, Touched(account, period), more
        )

    def _to_be_granted(self, account: str, period: str) -> int:
        """Return what the opening of a period that is still to be opened would grant, in gpu_ms."""
        if periods.is_opened(self._writer, self._cluster, period):
            return 0
        grants = periods.opening(self._writer, self._cluster, period, self._calendar).grants
        return sum(grant.gpu_ms for grant in grants if grant.account == account)

    def _to_be_carried(self, account: str, period: str, lasting: dt.date) -> int:
        """Return what the closes before a period would bring into it, and lasts to a day, in gpu_ms x per mille."""
        key = account, period, lasting
        if key not in self._carried:
            self._carried[key] = settlement.to_be_carried(
                self._writer, self._cluster, self._calendar, Touched(account, period), lasting
            )
        return self._carried[key]


def _less(carried: int, taken: int) -> int:
    """Return what is still carried over when a part of the period before is spent; a debt does not grow by it."""
    return max(min(carried, 0), carried - taken)


def _by_period(need: Need, card: Rates, calendar: Calendar) -> dict[str, dict[dt.date, int]]:
    """Return period -> day -> what a need takes on it, in gpu_ms x per mille."""
    found: dict[str, dict[dt.date, int]] = {}
    for piece in calendar.slices(*need.span):
        weighted = card.weighted(need.gpu_model, need.gpus_milli, piece.start_s, piece.end_s)
        found.setdefault(calendar.period_of(piece.day), {})[piece.day] = weighted
    return found
