"""What hard accounts can still promise: their balances, and what is to come into periods that are not settled yet.

Grants of a period come with its opening, and what the period before leaves comes with its close, which may be days
after the edge. A run that lives on either is not landed at midnight for that: what would come if both came now counts.
"""

from typing import NamedTuple

from gpuledger.database.engine import Writer
from gpuledger.kernel.accounts import lineage
from gpuledger.kernel.amounts import WEIGHT_ONE, gpu_hours
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant
from gpuledger.ledger import periods, queries, settlement
from gpuledger.ledger.balances import Rooms
from gpuledger.ledger.rates import UNWEIGHTED, Rates


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
        self._carried: dict[tuple[str, str], int] = {}

    def shortfall(self, need: Need) -> str | None:
        """Take what a hold needs, or return why it cannot be paid for.

        Each period that the span touches must have room for its part, what is still to come into it counted in.
        Nothing is taken when any part is lacking.
        """
        hard = self._hard & set(lineage(need.account))
        if not hard:
            return None
        parts = _by_period(need, self._card, self._calendar)
        earlier = 0
        for period, weighted in parts.items():
            to_come = self._to_be_granted(need.account, period)
            to_come += _less(self._to_be_carried(need.account, period), earlier) // WEIGHT_ONE
            found = self._rooms.left(need.account, period, hard, to_come)
            left = found.available_gpu_ms
            earlier += weighted
            if weighted and left * WEIGHT_ONE < weighted:
                return (
                    f"{found.account} is hard and has {gpu_hours(left)} GPU-hours left in {period};"
                    f" {gpu_hours(-(-weighted // WEIGHT_ONE))} are needed"
                )
        for period, weighted in parts.items():
            self._rooms.take(need.account, period, -(-weighted // WEIGHT_ONE))
            for (account, later), carried in self._carried.items():
                if account == need.account and later > period:
                    self._carried[account, later] = _less(carried, weighted)
        return None

    def _to_be_granted(self, account: str, period: str) -> int:
        """Return what the opening of a period that is still to be opened would grant, in gpu_ms."""
        if periods.is_opened(self._writer, self._cluster, period):
            return 0
        grants = periods.opening(self._writer, self._cluster, period, self._calendar).grants
        return sum(grant.gpu_ms for grant in grants if grant.account == account)

    def _to_be_carried(self, account: str, period: str) -> int:
        """Return what the closes before a period would bring into it if they came now, in gpu_ms x per mille."""
        if (account, period) not in self._carried:
            self._carried[account, period] = settlement.to_be_carried(
                self._writer, self._cluster, self._calendar, account, period
            )
        return self._carried[account, period]


def _less(carried: int, taken: int) -> int:
    """Return what is still carried over when a part of the period before is spent; a debt does not grow by it."""
    return max(min(carried, 0), carried - taken)


def _by_period(need: Need, card: Rates, calendar: Calendar) -> dict[str, int]:
    found: dict[str, int] = {}
    for piece in calendar.slices(*need.span):
        period = calendar.period_of(piece.day)
        weighted = card.weighted(need.gpu_model, need.gpus_milli, piece.start_s, piece.end_s)
        found[period] = found.get(period, 0) + weighted
    return found
