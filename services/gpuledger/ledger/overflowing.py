"""Open runs whose charges no column would hold any more: a tick leaves them where the tick before stood.

A run of a wrong unit, or one too many in an account that is full, must not stop the clock of its book. It is closed by
an estimated end with a reason of its own, as a run is whose end was lost: what was charged stays, the others go on, and
its true end, when it comes, beats the estimate - if the ledger can hold what it says.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

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
    too_large = {p.workload for p in postings if p.workload is not None and p.amount > HELD_MAX}
    shares: dict[store.Movement, dict[str, int]] = {}
    for posting in postings:
        for movement, amount in store.movements([posting]):
            own = shares.setdefault(movement, {})
            own[posting.workload or ""] = own.get(posting.workload or "", 0) + amount
    aside = set(too_large)
    while (overfull := _overfull(shares, standing, aside)) is not None:
        movement, total = overfull
        parts = {name: amount for name, amount in shares[movement].items() if name not in aside}
        aside.add(min(parts, key=lambda name: (parts[name] if total < 0 else -parts[name], name)))
    while True:
        may_stay = (
            name for name in sorted(aside - too_large) if _overfull(shares, standing, aside - {name}) is None
        )
        stays = next(may_stay, None)
        if stays is None:
            return aside
        aside.remove(stays)


def _overfull(
    shares: Mapping[store.Movement, Mapping[str, int]],
    standing: Mapping[store.Movement, int],
    aside: Collection[str],
) -> tuple[store.Movement, int] | None:
    """Return the first sum that no column holds, without those that are left aside, and what it is."""
    for movement in sorted(shares):
        parts = shares[movement].items()
        total = standing.get(movement, 0) + sum(amount for name, amount in parts if name not in aside)
        if abs(total) > HELD_MAX:
            return movement, total
    return None


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
