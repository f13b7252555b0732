"""What hard accounts can still promise: their own budgets, the limits above them, and what is to come.

Grants of a period come with its opening, and what the period before leaves comes with its close, which may be days
after the edge. A run that lives on either is not landed at midnight for that: what would come if both came now counts.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.kernel.accounts import lineage
from gpuledger.kernel.amounts import WEIGHT_ONE, gpu_hours
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant
from gpuledger.ledger import periods, queries
from gpuledger.ledger.as_of import seq_of, vector_of
from gpuledger.ledger.balances import Rooms
from gpuledger.ledger.outlook import Outlook
from gpuledger.ledger.rates import UNWEIGHTED, Rates
from gpuledger.ledger.remainder import remainder
from gpuledger.ledger.settled import Settled


class Need(NamedTuple):
    """GPU-time that is to be set aside: who pays, for what, from when to when (seconds since the epoch)."""

    account: str
    gpus_milli: int
    gpu_model: str | None
    span: tuple[int, int]


class Purse:
    """What is left to promise to hard accounts, and those below them, while several ask one after the other.

    Args:
        writer: The transaction that holds the book's lock; a snapshot where nothing is promised, only asked.
        cluster: The cluster.
        now_s: The present.
        calendar: The organisation's days.
        as_of: Recorded time: what the books said then, where nothing is promised, only asked; or the rows up to which
            they are read; now unless given.
    """

    def __init__(
        self,
        writer: Reader | Writer,
        cluster: str,
        now_s: int,
        calendar: Calendar,
        *,
        as_of: queries.AsOf = None,
    ) -> None:
        self._writer, self._cluster, self._now_s, self._calendar = writer, cluster, now_s, calendar
        self._vector = vector_of(writer, as_of)
        self._hard = queries.hard_accounts(writer, instant(now_s), seq_of(self._vector, ORG_BOOK))
        self._card = queries.rate_cards(writer, as_of).get(cluster, UNWEIGHTED)
        self._rooms = Rooms(writer, cluster, now_s, calendar, as_of)
        self._open_time = remainder(writer, cluster, now_s, as_of, calendar, as_known=True)
        self._outlooks: dict[str, Outlook] = {}
        self._counted: set[tuple[str, str]] = set()

    def shortfall(self, need: Need) -> str | None:
        """Take what a hold needs, or return why it cannot be paid for.

        Each period that the span touches must have room for its part under every limit that binds. Of a hard account
        itself nothing that stands, in any period, may be left without a lot for it. Nothing is taken when any part is
        lacking.
        """
        return self.shortfall_of([need])

    def shortfall_of(self, needs: Sequence[Need]) -> str | None:
        """Take what several holds of one account need together, or nothing; see ``shortfall``."""
        need = needs[0]
        hard = self._hard & set(lineage(need.account))
        if not hard:
            return None
        parts = _by_period(needs, self._card, self._calendar)
        lacking = self._lacking(need.account, parts) if need.account in hard else {}
        for period, days in parts.items():
            weighted = sum(days.values())
            left, binding = self._rooms.left(period, hard)
            if period in lacking and (own := (weighted - lacking[period]) // WEIGHT_ONE) < left:
                left, binding = own, need.account
            if weighted and left * WEIGHT_ONE < weighted:
                return (
                    f"{binding} is hard and has {gpu_hours(left)} GPU-hours left in {period};"
                    f" {gpu_hours(-(-weighted // WEIGHT_ONE))} are needed"
                )
        for period, amount in lacking.items():
            return (
                f"{need.account} is hard, and {gpu_hours(-(-amount // WEIGHT_ONE))} GPU-hours of what is set aside"
                f" in {period} would be paid by nothing"
            )
        self._take(needs, 1)
        return None

    def put_back(self, *needs: Need) -> None:
        """Count on what holds that stand would give back: all of one account, as they were taken."""
        if self._hard & set(lineage(needs[0].account)):
            self._take(needs, -1)

    def _take(self, needs: Sequence[Need], sign: int) -> None:
        account = needs[0].account
        for period, days in _by_period(needs, self._card, self._calendar).items():
            self._rooms.take(account, period, sign * -(-sum(days.values()) // WEIGHT_ONE))
            if account in self._hard:
                outlook = self._outlook(account)
                outlook.take({day: sign * weighted for day, weighted in days.items()})

    def _lacking(self, account: str, parts: Mapping[str, Mapping[dt.date, int]]) -> dict[str, int]:
        outlook = self._outlook(account)
        for period in parts:
            if (account, period) not in self._counted:
                self._counted.add((account, period))
                if to_come := self._to_be_granted(account, period):
                    outlook.give(period, to_come)
        return outlook.lacking({day: weighted for days in parts.values() for day, weighted in days.items()})

    def _outlook(self, account: str) -> Outlook:
        if account not in self._outlooks:
            today, seq = self._calendar.day_of(self._now_s), seq_of(self._vector, self._cluster)
            book = Settled(self._cluster, frozenset(), today, self._calendar, as_of_seq=seq)
            self._outlooks[account] = Outlook(self._writer, book, account, self._open_time)
        return self._outlooks[account]

    def _to_be_granted(self, account: str, period: str) -> int:
        """Return what the opening of a period that is still to be opened would grant, in gpu_ms."""
        if periods.is_opened(self._writer, self._cluster, period, seq_of(self._vector, self._cluster)):
            return 0
        opening = periods.opening(self._writer, self._cluster, period, self._calendar, self._vector)
        grants = opening.grants
        return sum(grant.gpu_ms for grant in grants if grant.account == account)


def _by_period(needs: Sequence[Need], card: Rates, calendar: Calendar) -> dict[str, dict[dt.date, int]]:
    """Return period -> day -> what needs take on it together, in gpu_ms x per mille."""
    found: dict[str, dict[dt.date, int]] = {}
    for need in needs:
        for piece in calendar.slices(*need.span):
            weighted = card.weighted(need.gpu_model, need.gpus_milli, piece.start_s, piece.end_s)
            days = found.setdefault(calendar.period_of(piece.day), {})
            days[piece.day] = days.get(piece.day, 0) + weighted
    return found
