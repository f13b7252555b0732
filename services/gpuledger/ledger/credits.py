"""What hardware failures give back: the end of a run that it has to do again. Pure.

Credit = GPUs x min(charged occupancy, time since the last checkpoint or the start, cap), where the run's end is the
moment at which the failure was noticed (DESIGN section 7): the run stays charged up to there. A run is credited for
one incident, the first that names it; a credit that was reversed never comes back.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gpuledger.events import incident, workload
from gpuledger.ledger.facts import Known


class Credit(NamedTuple):
    """The part of a run that is given back, ``[from_s, to_s)``: what was charged for it."""

    run: str
    incident: str
    from_s: int
    to_s: int


def credit(claims: Sequence[Known], checkpoints: Iterable[Known], from_s: int, to_s: int) -> Credit | None:
    """Return what a run that lasted over ``[from_s, to_s)`` is given back, or None.

    Args:
        claims: Every credit granted to the run, and every reversal.
        checkpoints: Its checkpoints.
        from_s: Its start.
        to_s: Its end.
    """
    reversed_ = {k.data.incident for k in claims if isinstance(k.data, incident.CreditReversed)}
    standing = [
        (known.at_s, known.data.incident, known.data.cap_s)
        for known in claims
        if isinstance(known.data, incident.CreditGranted) and known.data.incident not in reversed_
    ]
    if not standing:
        return None
    _, name, cap_s = min(standing)
    saved_s = max((k.at_s for k in checkpoints if from_s <= k.at_s <= to_s), default=from_s)
    since_s = max(from_s, saved_s, to_s - cap_s)
    run = next(k.data.run for k in claims if isinstance(k.data, workload.RunFact))
    return Credit(run, name, since_s, to_s) if since_s < to_s else None
