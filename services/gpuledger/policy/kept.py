"""The decisions of recent cycles, read back: with the sentences that their cycle would have said."""

from collections.abc import Sequence
from typing import Any

from gpuledger.database.engine import Reader
from gpuledger.ledger import cycle_decisions, cycles
from gpuledger.policy import pieces


def of_workload(reader: Reader, cluster: str, seq: int, workload: str) -> list[dict[str, Any]] | None:
    """Return what a cycle decided for a workload and its runs, in order; None when it is kept no longer."""
    piece = cycle_decisions.with_workload(reader, cluster, seq, workload)
    if piece is None:
        return None
    return [decision for _, decision in sorted(pieces.read(piece, workload), key=lambda placed: placed[0])]


def decisions_of(reader: Reader, cluster: str, recorded: cycles.Recorded) -> Sequence[dict[str, Any]] | None:
    """Return every decision of a cycle in its order; None when those to wait are kept no longer."""
    if not recorded.issued.waiting:
        found: Sequence[dict[str, Any]] = recorded.issued.record.get("decisions", ())
        return found
    kept = cycle_decisions.every(reader, cluster, recorded.seq)
    return pieces.read_all(kept) if kept else None


def latest_cycle(
    reader: Reader,
    cluster: str,
    *,
    at_s: int,
    seq: int | None = None,
    waiting_max: int | None = None,
) -> dict[str, Any] | None:
    """Return the newest cycle of a cluster up to an instant under the published keys, or None when there was none.

    Where amendments followed it, ``amendments`` names them, and decisions and reservations are those in force by now.
    Decisions to wait are left out once they are kept no longer, or where there are more than are wanted.

    Args:
        reader: The ledger.
        cluster: The cluster.
        at_s: Look only at cycles that decided for this instant or an earlier one.
        seq: Look only at rows of the book up to this one.
        waiting_max: How many decisions to wait are wanted; any number unless given.
    """
    word = cycles.newest_word(reader, cluster, at_s=at_s, seq=seq)
    return None if word is None else as_told(reader, cluster, word, waiting_max=waiting_max)


def as_told(
    reader: Reader, cluster: str, word: cycles.Word, *, waiting_max: int | None = None
) -> dict[str, Any]:
    """Return the policy's word on a cluster under the published keys; see ``latest_cycle``."""
    waiting = word.issued.issued.waiting
    is_wanted = waiting_max is None or waiting <= waiting_max
    every = decisions_of(reader, cluster, word.issued) if waiting and is_wanted else None
    found = dict(word.record if every is None else {**word.record, "decisions": word.in_force(every)})
    if word.amendments:
        found["amendments"] = [one.amended.cycle for one in word.amendments]
    return found
