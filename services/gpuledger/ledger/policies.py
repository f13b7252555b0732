"""Policy data in the ``~org`` book: versions with an effective time, set once, kept for ever (law 12).

A rate card may not reach back over what is charged: every posting stands as it was computed, and the
set of facts alone says what it must be (law 3). Setting one waits for all books, so that no charge is
computed under the card of a moment ago.
"""

from collections.abc import Mapping

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.budget import PolicyChanged
from gpuledger.events.envelope import ORG_BOOK, make
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, instant
from gpuledger.kernel.errors import Refused
from gpuledger.ledger import queries
from gpuledger.ledger.append import append
from gpuledger.ledger.copying import driver
from gpuledger.ledger.rates import RATE_CARD

SOURCE = "gpuledger/policy-file"


def changed_weights(
    connection: Reader | Writer, weights: Mapping[str, int], at_s: int
) -> dict[str, tuple[int, int]]:
    """Return model -> (weight in force then, weight wanted) of those that differ."""
    card = queries.rate_card(connection)
    return {
        model: (card.weight(model, at_s), weight)
        for model, weight in sorted(weights.items())
        if card.weight(model, at_s) != weight
    }


def set_weights(
    writer: Writer, weights: Mapping[str, int], at_s: int, by: str, *, clock: Clock, calendar: Calendar
) -> None:
    """Put weights in force from a moment on.

    Raises:
        Refused: When time from that moment on is charged already.
    """
    driver(writer).execute("LOCK TABLE ledger.books IN EXCLUSIVE MODE")
    check_reach(writer, at_s)
    seen_seq = queries.sequences(writer).get(ORG_BOOK, 0)
    fact = PolicyChanged(policy=RATE_CARD, weights=dict(sorted(weights.items())), by=by, reason="policy-file")
    event, _ = make(id=f"{RATE_CARD}/{at_s}/{seen_seq}", source=SOURCE, at_s=at_s, data=fact)
    append(writer, ORG_BOOK, [event], clock=clock, calendar=calendar)


def check_reach(connection: Reader | Writer, at_s: int) -> None:
    """Refuse a moment after which time is charged already.

    Raises:
        Refused: When there is such a charge; names the latest.
    """
    row = driver(connection).execute(
        "SELECT book, workload, to_at FROM ledger.segments WHERE until_seq IS NULL AND to_at > %s"
        " ORDER BY to_at DESC LIMIT 1",
        (instant(at_s),),
    ).fetchone()  # fmt: skip
    if row is not None:
        book, workload, to_at = row
        raise Refused(
            f"a rate card from {instant(at_s):%Y-%m-%dT%H:%M:%SZ} would reach back over what is charged:"
            f" workload {workload!r} of {book} up to {to_at:%Y-%m-%dT%H:%M:%SZ}",
            hint="let it begin later with --from; what is charged is corrected by adjustments",
        )
