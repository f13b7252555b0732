"""Balances: what was granted, what it bought, what is left, and who binds it.

own available = granted + transferred + credited - expired - charged - held, in weighted units shown as
gpu_ms; granted holds what was carried over from the period before; available is that, or the room under the
tightest limit above when that is smaller. What the time since the last tick adds is added on reading - use, and lots
that are gone since -, so that a balance never waits for a job to end or for a tick.
"""

import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.kernel.accounts import BOOK_POT_ACCOUNT, is_within, lineage, own_path
from gpuledger.kernel.amounts import WEIGHT_ONE, gpu_hours
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import seconds
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger import queries
from gpuledger.ledger.charges import CHARGE, CREDIT, UNALLOCATED, WEIGHTED
from gpuledger.ledger.copying import driver
from gpuledger.ledger.lapses import Ahead, Place
from gpuledger.ledger.limits import Binding, Limit, binding, limits, spent_below
from gpuledger.ledger.store import EFFECTIVE_PERIOD, LEGS


@dataclass(frozen=True, slots=True)
class BalanceQuery:
    """What is asked.

    Args:
        cluster: One cluster, or all.
        period: One budget period, or all.
        from_s: Only periods that end after this, seconds since the epoch.
        to_s: Only periods that begin before this.
        as_of: Recorded time: what the book said then, or the rows up to which books are read; now unless given.
        as_known: By the period that a movement belongs to, however late it was booked; else by the period that it
            was booked into, which a close has sealed.
    """

    cluster: str | None = None
    period: str | None = None
    from_s: int | None = None
    to_s: int | None = None
    as_of: queries.AsOf = None
    as_known: bool = False

    def asks_for(self, period: str, calendar: Calendar) -> bool:
        """Tell whether a period is wanted."""
        start_s, end_s = calendar.period_bounds_s(period)
        return (
            (self.period is None or period == self.period)
            and (self.from_s is None or end_s > self.from_s)
            and (self.to_s is None or start_s < self.to_s)
        )


@dataclass(frozen=True, slots=True)
class Balance:
    """One account's balance on one cluster for one period; amounts in gpu_ms.

    Args:
        granted_gpu_ms: What was given to it, what the period before left it included.
        rolled_over_gpu_ms: That part of it; below zero for a debt.
        own_available_gpu_ms: What the account itself has left.
        available_gpu_ms: What it may spend: no more than any limit above it leaves.
        binding_account: The account whose room that is.
    """

    account: str
    cluster: str
    period: str
    granted_gpu_ms: int
    transferred_gpu_ms: int
    charged_gpu_ms: int
    held_gpu_ms: int
    credited_gpu_ms: int
    expired_gpu_ms: int
    available_gpu_ms: int
    unallocated_gpu_ms: int
    binding_account: str
    own_available_gpu_ms: int
    rolled_over_gpu_ms: int = 0

    @property
    def spent_gpu_ms(self) -> int:
        """What counts against a limit: charges and holds, net of credits."""
        return self.charged_gpu_ms + self.held_gpu_ms - self.credited_gpu_ms

    def as_json(self) -> dict[str, Any]:
        """Return the balance under the published keys, each amount also as GPU-hours."""
        data: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        for name in _AMOUNTS:
            data[name.removesuffix("_gpu_ms") + "_gpu_hours"] = str(gpu_hours(data[name]))
        return data


_AMOUNTS = tuple(f.name for f in fields(Balance) if f.name.endswith("_gpu_ms"))


def balances(
    reader: Reader | Writer, query: BalanceQuery, now_s: int, default: Calendar | None = None
) -> list[Balance]:
    """Return the balances of all leaf accounts that have any, by cluster, period and account.

    What an inner account owns itself is its leaf ``~own``.

    With ``as_of`` (a recorded time) or ``as_known`` they are folded anew from what was posted.
    """
    return read(reader, query, now_s, default).leaves


@dataclass(frozen=True, slots=True)
class Found:
    """What balances are read from.

    Args:
        leaves: Each leaf's balances, by cluster, period and account.
        caps: The limits in force.
        spent: What the subtree of each node has spent; empty where nothing is limited.
        calendar: The organisation's days.
        accounts: Every account.
        then_s: The instant they are of, seconds since the epoch.
    """

    leaves: list[Balance]
    caps: dict[Limit, int]
    spent: dict[Limit, int]
    calendar: Calendar
    accounts: list[str]
    then_s: int

    def balance(self, account: str, query: BalanceQuery) -> Balance:
        """Return one account's balance; ``balance`` says which.

        Args:
            account: One that exists.
            query: What was read; it may ask for one period of it.

        Raises:
            NotFound: When it has no balance there and then.
        """
        below = [
            b for b in self.leaves
            if (query.period is None or b.period == query.period) and is_within(b.account, account)
        ]  # fmt: skip
        if not below:
            raise NotFound(
                f"account {account!r} has no balance on cluster {query.cluster!r}"
                + (f" in {query.period}" if query.period else ""),
                hint=f"gpuledger usage --by account --cluster {query.cluster} shows what was booked",
            )
        periods = {b.period for b in below}
        begun = [p for p in periods if self.calendar.period_bounds_s(p)[0] <= self.then_s]
        newest = max(begun) if begun else min(periods)
        return self._sum(account, [b for b in below if b.period == newest])

    def tree(self, account: str, query: BalanceQuery) -> list[Balance]:
        """Return an account's balance and that of each node below it, for one period, from the top down.

        Args:
            account: One that exists.
            query: As for ``balance``, which says of which period.

        Raises:
            NotFound: When it has no balance there and then.
        """
        top = self.balance(account, query)
        below: dict[str, list[Balance]] = {account: []}
        for leaf in self.leaves:
            if leaf.period == top.period and is_within(leaf.account, account):
                for node in lineage(leaf.account):
                    if is_within(node, account):
                        below.setdefault(node, []).append(leaf)
        return [top, *(self._sum(node, below[node]) for node in sorted(below) if node != account)]

    def _sum(self, account: str, parts: list[Balance]) -> Balance:
        """Return an account's balance from those of the leaves below it, or its own, in one period."""
        sums = {name: sum(getattr(b, name) for b in parts) for name in _AMOUNTS}
        whole = Balance(
            account=account,
            cluster=parts[0].cluster,
            period=parts[0].period,
            binding_account=account,
            **sums,
        )
        return _bound(whole, self.caps, self.spent)


def read(reader: Reader | Writer, query: BalanceQuery, now_s: int, default: Calendar | None) -> Found:
    """Return what balances are read from; arguments as ``balances``."""
    calendar = queries.calendar(reader, default or Calendar(), query.as_of)
    folded = query.as_of is not None or query.as_known
    vector = queries.sequences(reader, query.as_of) if folded else {}
    period = EFFECTIVE_PERIOD if query.as_known else "period"
    rows = driver(reader).execute(
        f"""
        SELECT book, account, period,
               coalesce(sum(amount) FILTER (WHERE pot = 'budget' AND code IN ('grant', 'rollover')), 0)::bigint,
               coalesce(sum(amount) FILTER (WHERE pot = 'budget' AND code = 'transfer'), 0)::bigint,
               coalesce(sum(amount) FILTER (WHERE pot = 'spent' AND code = 'charge'), 0)::bigint,
               coalesce(sum(amount) FILTER (WHERE pot = 'held'), 0)::bigint,
               coalesce(sum(amount) FILTER (WHERE pot = 'credited'), 0)::bigint,
               coalesce(sum(amount) FILTER (WHERE pot = 'expired' AND code = 'expiry'), 0)::bigint,
               coalesce(sum(amount) FILTER (WHERE pot = 'unallocated'), 0)::bigint,
               coalesce(sum(amount) FILTER (WHERE pot = 'budget' AND code = 'rollover'), 0)::bigint
        FROM {_FOLDED.format(period=period) if folded else "ledger.balances"} AS b
        WHERE commodity = %(commodity)s AND account <> %(issuer)s
          AND (%(cluster)s::text IS NULL OR book = %(cluster)s)
        GROUP BY book, account, period
        """,
        {
            "commodity": WEIGHTED,
            "issuer": BOOK_POT_ACCOUNT,
            "cluster": query.cluster,
            "books": list(vector),
            "seqs": list(vector.values()),
        },
    )
    accounts = queries.account_paths(reader, vector.get(ORG_BOOK) if query.as_of is not None else None)
    inner = queries.inner_of(accounts)
    sums = {(book, account, period): amounts for book, account, period, *amounts in rows}
    now_s = _known_s(query, now_s)
    ahead = Ahead(reader, query.cluster, now_s, query.as_of, calendar, as_known=query.as_known)
    _add(sums, ahead)
    own = [
        _own(book, own_path(account) if account in inner else account, period, amounts)
        for (book, account, period), amounts in sorted(sums.items())
        if query.asks_for(period, calendar)
    ]
    caps = limits(reader, vector if folded else None)
    spent = spent_below((_place(b), b.spent_gpu_ms) for b in own) if caps else {}
    return Found([_bound(b, caps, spent) for b in own], caps, spent, calendar, accounts, now_s)


def _add(sums: dict[Place, list[int]], ahead: Ahead) -> None:
    """Add what a tick of the instant would add."""
    for place, rest in ahead.used.items():
        amounts = sums.setdefault(place, [0] * _POTS)
        amounts[_CHARGED] += rest.charged
        amounts[_HELD] += rest.held
        amounts[_UNALLOCATED] += rest.unallocated
    for added, columns in (
        (ahead.expired, (_EXPIRED,)),
        (ahead.granted, (_GRANTED,)),
        (ahead.rolled, (_GRANTED, _ROLLED)),
        (ahead.back[CHARGE], (_CHARGED,)),
        (ahead.back[CREDIT], (_CREDITED,)),
        (ahead.back[UNALLOCATED], (_UNALLOCATED,)),
    ):
        for place, amount in added.items():
            amounts = sums.setdefault(place, [0] * _POTS)
            for column in columns:
                amounts[column] += amount


def _known_s(query: BalanceQuery, now_s: int) -> int:
    """Return up to when something is known: the present, or the recorded time that is asked about."""
    return min(now_s, seconds(query.as_of)) if isinstance(query.as_of, dt.datetime) else now_s


def _place(balance: Balance) -> Limit:
    return Limit(balance.cluster, balance.period, balance.account)


def _bound(own: Balance, caps: Mapping[Limit, int], spent: Mapping[Limit, int]) -> Balance:
    found = binding(own.own_available_gpu_ms, _place(own), caps, spent)
    return replace(own, available_gpu_ms=found.available_gpu_ms, binding_account=found.account)


_POTS = 8
_GRANTED, _CHARGED, _HELD, _CREDITED, _EXPIRED, _UNALLOCATED, _ROLLED = 0, 2, 3, 4, 5, 6, 7
"""Places in a row of sums."""

_FOLDED = f"""
    (SELECT legs.book, commodity, account, {{period}} AS period, pot, code, amount FROM ({LEGS}) AS legs
     JOIN unnest(%(books)s::text[], %(seqs)s::bigint[]) AS v (book, seq)
       ON legs.book = v.book AND legs.seq <= v.seq)
"""


def balance(
    reader: Reader | Writer, account: str, query: BalanceQuery, now_s: int, default: Calendar | None = None
) -> Balance:
    """Return one account's balance; an inner account is the sum of the leaves below it.

    Without a cluster the account's root names it; without a period the newest one with movements
    that had begun at the recorded time is taken, or the first to come when none had.

    Raises:
        NotFound: When the account does not exist, or has no balance there and then.
    """
    queries.require_account(reader, account)
    query = replace(query, cluster=query.cluster or next(lineage(account)))
    return read(reader, query, now_s, default).balance(account, query)


def room_under(
    reader: Reader | Writer, place: Limit, now_s: int, default: Calendar | None = None
) -> int | None:
    """Return what a limit leaves, in gpu_ms: less what its whole subtree has spent or set aside; None without one."""
    found = read(reader, BalanceQuery(place.cluster, place.period), now_s, default)
    return found.caps[place] - found.spent.get(place, 0) if place in found.caps else None


_UNLIMITED = 1 << 100
"""More GPU-time than anything can ask for."""


class Rooms:
    """What the limits above hard accounts of a cluster leave, while parts of it are promised one after the other.

    Args:
        reader: The transaction that holds the book's lock.
        cluster: The cluster.
        now_s: The present.
        default: The calendar before the organisation has set one.
        as_of: Recorded time: what the books said then, where nothing is promised, only asked; now unless given.
    """

    def __init__(
        self,
        reader: Reader | Writer,
        cluster: str,
        now_s: int,
        default: Calendar | None,
        as_of: queries.AsOf = None,
    ) -> None:
        self._reader, self._cluster, self._now_s, self._default = reader, cluster, now_s, default
        self._as_of = as_of
        self._found: dict[str, Found] = {}

    def left(self, period: str, hard: Collection[str]) -> Binding:
        """Return the smallest room that a limit leaves in a period, and whose limit that is.

        Args:
            period: The budget period.
            hard: Hard accounts of one path, at least one. From the lowest upwards every limit binds; what is below
                may be overdrawn.
        """
        found, lowest = self._in(period), max(hard, key=len)
        return binding(_UNLIMITED, Limit(self._cluster, period, lowest), found.caps, found.spent)

    def take(self, account: str, period: str, gpu_ms: int) -> None:
        """Promise a part to a leaf: nothing above it has that any more."""
        found = self._in(period)
        for node in lineage(account):
            place = Limit(self._cluster, period, node)
            found.spent[place] = found.spent.get(place, 0) + gpu_ms

    def _in(self, period: str) -> Found:
        if period not in self._found:
            query = BalanceQuery(self._cluster, period, as_of=self._as_of)
            self._found[period] = read(self._reader, query, self._now_s, self._default)
        return self._found[period]


def _own(book: str, account: str, period: str, amounts: list[int]) -> Balance:
    # Weighted amounts are gpu_ms x per mille; people and programs see gpu_ms, rounded down.
    granted, transferred, charged, held, credited, expired, unallocated, rolled = (
        a // WEIGHT_ONE for a in amounts
    )
    # Exact: what is left is rounded once, however many movements led there.
    plus, minus = amounts[0] + amounts[1] + amounts[4], amounts[2] + amounts[3] + amounts[5]
    available = (plus - minus) // WEIGHT_ONE
    return Balance(
        account=account,
        cluster=book,
        period=period,
        granted_gpu_ms=granted,
        transferred_gpu_ms=transferred,
        charged_gpu_ms=charged,
        held_gpu_ms=held,
        credited_gpu_ms=credited,
        expired_gpu_ms=expired,
        available_gpu_ms=available,
        unallocated_gpu_ms=unallocated,
        binding_account=account,
        own_available_gpu_ms=available,
        rolled_over_gpu_ms=rolled,
    )
