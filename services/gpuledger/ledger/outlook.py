"""What would come of an account's periods if each closed as it stands, and what still fits into them.

A period lives on what the one before leaves to it. What is set aside in December may be paid from November's rest,
long before November is closed: then nobody may take that rest away, in November or in any other way. So whoever takes
from the budget of a hard account asks here: would any use, of any period that is not settled yet, be left without a
lot that was not before? The answer is the arithmetic of the closes themselves.
"""

import datetime as dt
from collections import Counter
from collections.abc import Mapping

from gpuledger.database.engine import Reader, Writer
from gpuledger.kernel.amounts import WEIGHT_ONE
from gpuledger.ledger import settled, settlement
from gpuledger.ledger.lots import Lot
from gpuledger.ledger.remainder import Place, Remainder
from gpuledger.ledger.settled import Settled


class Outlook:
    """The lots and uses of one account, from its first period that is not settled yet.

    Args:
        connection: A transaction that holds the book's lock, or a snapshot.
        book: The book on the present day; as of which row it is read.
        account: The account.
        open_time: What the time since the last tick adds, by the period that it belongs to.
        since: A period that is asked about, closed or not; those from there on are looked at too.
    """

    def __init__(
        self,
        connection: Reader | Writer,
        book: Settled,
        account: str,
        open_time: Mapping[Place, Remainder],
        since: str | None = None,
    ) -> None:
        self._book, self._account, self._calendar = book.name, account, book.calendar
        today, calendar, seq = book.today, book.calendar, book.as_of_seq
        unsettled, last = settled.reach(connection, book.name, account, seq)
        first = min(period for period in (unsettled, since, calendar.period_of(today)) if period)
        starts = {account: first}
        lots = settled.lots(connection, book, starts, seq, from_scratch=seq is not None)
        uses = settled.uses(connection, book, starts, None)
        self._first, self._last = first, max(first, last or first)
        self._lots = {period: own for (_, period), own in lots.items()}
        self._uses = Counter({day: used for own in uses.values() for day, used in own.items()})
        for (name, owner, period), rest in open_time.items():
            if (name, owner) == (book.name, account) and period >= first:
                # No lot lapses unnoticed between the last tick and now: any day in between is as good.
                begin, end = calendar.days_of(period)
                self._uses[min(max(today, begin), end)] += rest.charged + rest.held

    def give(self, period: str, gpu_ms: int) -> None:
        """Count on what a period is still to be granted."""
        name, amount = f"to come/{period}", gpu_ms * WEIGHT_ONE
        self._lots[period] = [*self._lots.get(period, ()), Lot(name, None, None, 0, amount, None)]

    def take(self, days: Mapping[dt.date, int]) -> None:
        """Count on more use by day, gpu_ms x per mille; below zero it is given back."""
        self._uses.update(days)

    def lacking(self, days: Mapping[dt.date, int]) -> dict[str, int]:
        """Return period -> all use in it without a lot, for those in which further use would leave more without one.

        Args:
            days: Day -> the further use; gpu_ms x per mille, as is what is returned.
        """
        last = max([self._last, *(self._calendar.period_of(day) for day in days)])
        before, after = self._overruns(last, {}), self._overruns(last, days)
        return {period: lacks for period, lacks in after.items() if lacks > before[period]}

    def _overruns(self, last: str, more: Mapping[dt.date, int]) -> dict[str, int]:
        """Return period -> the use that nothing covers, when every period up to the last has closed."""
        chain = [self._first]
        while chain[-1] < last:
            chain.append(self._calendar.following(chain[-1]))
        _, last_day = self._calendar.days_of(last)
        over = Settled(self._book, frozenset(chain), last_day + dt.timedelta(days=1), self._calendar)
        uses: dict[tuple[str, str], dict[dt.date, int]] = {}
        for day in {*self._uses, *more}:
            used = self._uses[day] + more.get(day, 0)
            uses.setdefault((self._account, self._calendar.period_of(day)), {})[day] = used
        lots = {(self._account, period): own for period, own in self._lots.items()}
        found, _ = settlement.unfold(over, self._account, self._first, lots, uses)
        return {period: found[period].overrun for period in chain}
