"""What is known of one workload, and which of two contradictory facts counts.

Law 3: facts are ranked by (source rank, source version, source time, content), never by arrival, and never by
anything that differs from ledger to ledger, such as the token of a user. The loser stays in the journal.
"""

from collections.abc import Sequence

import msgspec

from gpuledger.events import workload as events
from gpuledger.events.decision import DecisionMade
from gpuledger.events.registry import Fact, name_of


class Known(msgspec.Struct, frozen=True):
    """A fact as the ledger knows it.

    Args:
        data: The fact; its user is a token.
        at_s: When it happened, seconds since the epoch.
        source: Who said so.
        digest: Digest of its bytes, keyed where they name a user.
    """

    data: Fact
    at_s: int
    source: str
    digest: bytes


STOPS = (events.Ended, events.Preempted, events.Requeued)
"""Facts that end a run."""

CLOSERS = frozenset({*STOPS, events.Resized, events.ClassChanged, events.Updated, DecisionMade})
"""Facts from which something is posted for a workload: they can close a segment, or set GPU-time aside."""


def source_rank(source: str) -> int:
    """Return how far a source is believed: a reconciliation above a stream, a stream above an estimate."""
    return 1 if source.startswith("reconcile/") else 0


Rank = tuple[bool, int, int, int, bytes, bytes]
"""Compared from left to right; the largest counts."""


def rank(known: Known) -> Rank:
    """Return the sort key of contradictory facts. A measured time beats an estimate.

    A record of a version tells of one submission of many: a scheduler sets the time anew when it requeues, and the
    workload was submitted when it was first submitted. Of other facts the one from the furthest version of a record
    counts, then the latest: whoever changes a submission tells it anew. Of conclusions the one that is based on more
    counts.

    The digest decides last, between facts that say the same of different people: keys of users are
    random, so it must not decide what an amount depends on.
    """
    data = known.data
    measured = not getattr(data, "estimated", False)
    version = getattr(data, "version", None)
    if version is not None and isinstance(data, events.Submitted):
        first, then = -known.at_s, version
    else:
        first, then = version or getattr(data, "basis", None) or 0, known.at_s
    return (measured, source_rank(known.source), first, then, _content(data), known.digest)


def _content(data: Fact) -> bytes:
    if getattr(data, "user", None) is not None:
        data = msgspec.structs.replace(data, user="-")
    return msgspec.json.encode((name_of(type(data)), data))


def winner(candidates: Sequence[Known]) -> Known | None:
    """Return the fact that counts, or None when there is none."""
    if len(candidates) <= 1:
        return candidates[0] if candidates else None
    return max(candidates, key=rank)
