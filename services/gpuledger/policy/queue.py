"""The queue of a cluster as the newest cycle ordered it, with the ratio of each account that it was ordered by."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from gpuledger.database.engine import Reader
from gpuledger.kernel.accounts import lineage, own_path
from gpuledger.ledger import cycles, state
from gpuledger.ledger.as_of import Vector, seq_of
from gpuledger.ledger.state import Pending
from gpuledger.policy.kept import decisions_of
from gpuledger.policy.outcomes import Action

FORGOTTEN = "decisions to wait of this cycle are kept no longer: who waits is listed without a place"
"""Why nobody has a place although a cycle ran."""


class Queued(NamedTuple):
    """A workload that waits.

    Args:
        asked: What it asks for.
        position: Its place in the cycle's order, from 1; None where the cycle has not ordered it.
        decision: What the cycle, or an amendment since, decided; None likewise.
        ratios: (account, used / entitled) from the top down, as the cycle had them: paths are compared where they
            part, and the lower ratio comes first. None without entitlement.
    """

    asked: Pending
    position: int | None
    decision: Mapping[str, Any] | None
    ratios: list[tuple[str, str | None]]


class Queue(NamedTuple):
    """Who waits.

    Args:
        cycle: The cycle that ordered them, or its newest amendment; None before any ran.
        at_s: The instant that it decided for.
        rows: In their order, then who was submitted since, by when.
        reason: Why nobody has a place; None where somebody may.
    """

    cycle: str | None
    at_s: int | None
    rows: list[Queued]
    reason: str | None


def queue(reader: Reader, cluster: str, *, now_s: int, vector: Vector | None = None) -> Queue:
    """Return who waits on a cluster, in the order of the newest word of the policy.

    Who was told to start and has not started yet waits still.

    Args:
        reader: A snapshot.
        cluster: The cluster.
        now_s: The instant, seconds since the epoch.
        vector: Book -> the row up to which it is read; now unless given.
    """
    seq = seq_of(vector, cluster)
    waiting = {one.workload: one for one in state.pending(reader, cluster, now_s, seq=seq)}
    word = cycles.newest_word(reader, cluster, at_s=now_s, seq=seq)
    if word is None:
        return Queue(None, None, _unordered(waiting), "the policy has not run for this cluster")
    every = decisions_of(reader, cluster, word.issued)
    ratios = {row["account"]: row.get("ratio") for row in word.record["allocations"]}
    rows: list[Queued] = []
    for decision in [] if every is None else word.in_force(every):
        if decision["action"] == Action.PREEMPT.value:
            continue
        asked = waiting.pop(decision["workload"], None)
        if asked is not None:
            rows.append(Queued(asked, len(rows) + 1, decision, _ratios(asked.account, ratios)))
    rows += _unordered(waiting, ratios)
    return Queue(word.newest.id, word.newest.at_s, rows, FORGOTTEN if every is None else None)


def _unordered(
    waiting: Mapping[str, Pending], ratios: Mapping[str, str | None] | None = None
) -> list[Queued]:
    asked = sorted(waiting.values(), key=lambda one: (one.submitted_s, one.workload))
    return [Queued(one, None, None, _ratios(one.account, ratios or {})) for one in asked]


def _ratios(account: str, ratios: Mapping[str, str | None]) -> list[tuple[str, str | None]]:
    """Return the ratios on an account's path; what an inner account owns itself stands in its child ``~own``."""
    path = lineage(own_path(account)) if own_path(account) in ratios else lineage(account)
    return [(node, ratios[node]) for node in path if node in ratios]
