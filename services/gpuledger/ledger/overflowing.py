"""Open runs whose charges no column would hold any more: a tick leaves them where the tick before stood.

A run of a wrong unit, or one too many in an account that is full, must not stop the clock of its book. It is closed by
an estimated end with a reason of its own, as a run is whose end was lost: what was charged stays, the others go on, and
its true end, when it comes, beats the estimate - if the ledger can hold what it says.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush

from gpuledger.database.engine import Writer
from gpuledger.events.envelope import Event, make
from gpuledger.events.workload import Ended
from gpuledger.ledger import projections, store
from gpuledger.ledger.accrual import Span, accrue
from gpuledger.ledger.charges import Booking, Posting
from gpuledger.ledger.copying import driver
from gpuledger.ledger.rates import Rates

SOURCE = "gpuledger/overflows"
REASON = "amount-too-large"

HELD_MAX = 2**63 - 1
"""The largest amount of a posting, and of a balance on either side of zero."""


def overflowing(postings: Sequence[Posting], standing: Mapping[store.Movement, int]) -> set[str]:
    """Return workloads without which every amount and every sum can be held, and none of which could stay. Pure.

    Of a sum that does not fit, the largest part goes of those that lead out of bounds; what goes may have held another
    sum within them, so all are looked at until all fit. Then whoever fits in after all stays.

    Args:
        postings: What is to be posted, each of a workload.
        standing: What the balances are that they are added to, each within bounds; those that are absent are 0.
    """
    sums = _Sums(postings, standing)
    too_large = {p.workload for p in postings if p.workload is not None and p.amount > HELD_MAX}
    for name in too_large:
        sums.leave(name)
    _reduce(sums)
    _readmit(sums, sums.aside - too_large)
    return sums.aside


class _Sums:
    """Sums, what each workload adds to them, and who is left aside."""

    def __init__(self, postings: Iterable[Posting], standing: Mapping[store.Movement, int]) -> None:
        self.aside: set[str] = set()
        self.shares: dict[store.Movement, dict[str, int]] = {}
        self._of: dict[str, dict[store.Movement, int]] = {}
        for posting in postings:
            name = posting.workload or ""
            for movement, amount in store.movements([posting]):
                own = self._of.setdefault(name, {})
                own[movement] = self.shares.setdefault(movement, {})[name] = own.get(movement, 0) + amount
        self.totals = {
            movement: standing.get(movement, 0) + sum(parts.values())
            for movement, parts in self.shares.items()
        }

    def of(self, name: str) -> Mapping[store.Movement, int]:
        """Return what a workload adds to each sum."""
        return self._of.get(name, {})

    def leave(self, name: str) -> None:
        self.aside.add(name)
        for movement, amount in self.of(name).items():
            self.totals[movement] -= amount

    def stay(self, name: str) -> None:
        self.aside.remove(name)
        for movement, amount in self.of(name).items():
            self.totals[movement] += amount

    def is_overfull(self, movement: store.Movement, more: int = 0) -> bool:
        """Tell whether no column holds a sum, or would with so much more."""
        return abs(self.totals[movement] + more) > HELD_MAX


def _reduce(sums: _Sums) -> None:
    """Leave workloads aside until every sum fits: of the first that does not, the one that leads out the most."""
    overfull = sorted(filter(sums.is_overfull, sums.shares))
    leading: dict[tuple[store.Movement, bool], Iterator[str]] = {}
    while overfull:
        movement = overfull[0]
        if not sums.is_overfull(movement):
            heappop(overfull)
            continue
        sign = -1 if sums.totals[movement] > 0 else 1
        parts = sums.shares[movement]
        order = leading.get((movement, sign > 0))
        if order is None:
            order = iter(sorted(parts, key=lambda name: (sign * parts[name], name)))
            leading[movement, sign > 0] = order
        # Whoever is aside stays so here: nobody is looked at twice.
        name = next(name for name in order if name not in sums.aside)
        sums.leave(name)
        for moved in sums.of(name):
            if moved != movement and sums.is_overfull(moved):
                heappush(overfull, moved)


def _readmit(sums: _Sums, names: Iterable[str]) -> None:
    """Let stay whoever fits in after all, the first by name first, until nobody does.

    One that does not fit is asked again when the sum that it does not fit into has come back from that bound.
    """
    waiting = sorted(names)
    blocked: dict[tuple[store.Movement, bool], list[str]] = {}
    while waiting:
        name = heappop(waiting)
        own = sums.of(name)
        bound = next(
            (movement for movement, amount in own.items() if sums.is_overfull(movement, amount)), None
        )
        if bound is not None:
            blocked.setdefault((bound, own[bound] > 0), []).append(name)
            continue
        sums.stay(name)
        for movement, amount in own.items():
            for again in blocked.pop((movement, amount < 0), ()):
                heappush(waiting, again)


def ends(writer: Writer, book: str, span: Span, booking: Booking, card: Rates) -> list[Event]:
    """Return estimated ends of the runs that a tick cannot charge, at the tick before or where they began since.

    Args:
        writer: The transaction that holds the book's lock.
        book: The book.
        span: The time between the ticks.
        booking: Where it is booked.
        card: What each model weighs.
    """
    postings = accrue(writer, book, span, booking, card, besides=())
    names = overflowing(postings, _standing(writer, book))
    found = []
    for workload, run, from_s in _open(writer, book, names, span.at_s):
        at_s = from_s if span.before_s is None else max(from_s, span.before_s)
        fact = Ended(cluster=book, workload=workload, run=run, reason=REASON, estimated=True)
        found.append(make(id=f"{workload}/{run}/{at_s}", source=SOURCE, at_s=at_s, data=fact)[0])
    return found


def _standing(writer: Writer, book: str) -> dict[store.Movement, int]:
    rows = driver(writer).execute(
        "SELECT commodity, account, period, pot, code, amount FROM ledger.balances WHERE book = %s", (book,)
    )
    return {store.Movement(*key): amount for *key, amount in rows}


def _open(writer: Writer, book: str, names: Collection[str], at_s: int) -> Iterable[tuple[str, str, int]]:
    """Yield (workload, run, start of its open segment)."""
    rows = driver(writer).execute(
        f"SELECT {', '.join(projections.SEGMENT_COLUMNS)} FROM ledger.segments"
        " WHERE book = %s AND until_seq IS NULL AND to_at IS NULL AND workload = ANY(%s) ORDER BY workload, run",
        (book, sorted(names)),
    )
    for row in rows.fetchall():
        segment = projections.segment_of(row)
        if segment.from_s < at_s:
            yield segment.workload, segment.run, segment.from_s
