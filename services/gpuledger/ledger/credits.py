"""What hardware failures give back: the charges of a run for what it has to do again. Pure.

Credit = GPUs x min(charged occupancy, time since the last checkpoint or the start, cap), where the run's end is the
moment at which the failure was noticed (DESIGN section 7): the run stays charged up to there. It is taken from the
run's newest charges, so that a run that became unallocated before its host failed gets back what it was charged before.
A run is credited for one incident, the first that names it, and only while the stop that counts is one that a failure
can explain. A credit that a person reversed never comes back.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gpuledger.events import incident
from gpuledger.ledger.facts import Known
from gpuledger.ledger.stops import Stop, why


class Credit(NamedTuple):
    """A part of a run that is given back, ``[from_s, to_s)``: what was charged for it."""

    run: str
    incident: str
    from_s: int
    to_s: int


class Occupancy(NamedTuple):
    """A run that stopped.

    Args:
        from_s: Its start.
        to_s: Its end.
        charged: When it was charged, in order.
        reason: Why it stopped, in the source's own word.
    """

    from_s: int
    to_s: int
    charged: Sequence[tuple[int, int]]
    reason: str


def concluded(
    claims: Iterable[incident.CreditGranted | incident.CreditWithdrawn],
) -> Mapping[str, incident.CreditGranted]:
    """Return incident -> the credit that stands for it, of all that was ever concluded about one run."""
    newest: dict[str, incident.CreditGranted | incident.CreditWithdrawn] = {}
    # Of the same basis, which no two searches of one book have, the more cautious one counts.
    for claim in sorted(claims, key=lambda c: (c.basis, isinstance(c, incident.CreditWithdrawn))):
        newest[claim.incident] = claim
    return {name: claim for name, claim in newest.items() if isinstance(claim, incident.CreditGranted)}


def credit(claims: Sequence[Known], checkpoints: Iterable[Known], run: Occupancy) -> list[Credit]:
    """Return the parts of a run that are given back, in order.

    Args:
        claims: Every credit granted to the run, and every one withdrawn or reversed.
        checkpoints: Its checkpoints.
        run: When it ran, and why it stopped.
    """
    if why(run.reason) is Stop.ORDINARY:
        return []
    reversed_ = {k.data.incident for k in claims if isinstance(k.data, incident.CreditReversed)}
    stands = concluded(
        k.data for k in claims if isinstance(k.data, incident.CreditGranted | incident.CreditWithdrawn)
    )
    noticed = {
        (k.at_s, k.data.incident)
        for k in claims
        if isinstance(k.data, incident.CreditGranted) and k.data.incident in stands.keys() - reversed_
    }
    if not noticed:
        return []
    given = stands[min(noticed)[1]]
    saved_s = max((k.at_s for k in checkpoints if run.from_s <= k.at_s <= run.to_s), default=run.from_s)
    left_s = min(run.to_s - saved_s, given.cap_s)
    found: list[Credit] = []
    for from_s, to_s in reversed(run.charged):
        if left_s <= 0:
            break
        since_s = max(from_s, to_s - left_s)
        found.insert(0, Credit(given.run, given.incident, since_s, to_s))
        left_s -= to_s - since_s
    return found
