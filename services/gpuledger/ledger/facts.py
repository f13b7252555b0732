"""What is known of one workload, and which of two contradictory facts counts.

Law 3: facts are ranked by (source rank, source time, digest), never by arrival. The loser stays in
the journal.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gpuledger.events import workload as events
from gpuledger.events.registry import Fact


@dataclass(frozen=True, slots=True)
class Known:
    """A fact as the ledger knows it.

    Args:
        data: The fact; its user is a token.
        at_s: When it happened, seconds since the epoch.
        source: Who said so.
        digest: Digest of its bytes; the last resort of the ranking.
    """

    data: Fact
    at_s: int
    source: str
    digest: bytes


STOPS = (events.Ended, events.Preempted, events.Requeued)
"""Facts that end a run."""

CLOSERS = (*STOPS, events.Resized, events.ClassChanged)
"""Facts that can close a segment."""


def source_rank(source: str) -> int:
    """Return how far a source is believed: a reconciliation above a stream, a stream above an estimate."""
    return 1 if source.startswith("reconcile/") else 0


def rank(known: Known) -> tuple[bool, int, int, bytes]:
    """Return the sort key of contradictory facts; the largest counts. A measured time beats an estimate."""
    measured = not getattr(known.data, "estimated", False)
    return (measured, source_rank(known.source), known.at_s, known.digest)


def winner(candidates: Sequence[Known]) -> Known | None:
    """Return the fact that counts, or None when there is none."""
    if len(candidates) <= 1:
        return candidates[0] if candidates else None
    return max(candidates, key=rank)
