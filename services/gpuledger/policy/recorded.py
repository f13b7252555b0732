"""What the policy decided, read back: from what is kept of a cycle, else by computing it again."""

from typing import Any, NamedTuple

from gpuledger.database.engine import Reader
from gpuledger.ledger import cycles
from gpuledger.policy import kept
from gpuledger.policy.replaying import recompute


class Recorded(NamedTuple):
    """The decision of a workload in one recorded cycle.

    Args:
        cycle: The cycle's id.
        at_s: The instant that it decided for.
        decision: The decision under its published keys.
    """

    cycle: str
    at_s: int
    decision: dict[str, Any]


def decision_of(
    reader: Reader, cluster: str, workload: str, at_s: int, *, seq: int | None = None
) -> Recorded | None:
    """Return what the newest word on a workload is; None when the newest cycle decided nothing for it, or is not there.

    Amendments say something of some workloads; of all others the newest word is what their cycle decided.

    Of several decisions - a preemption for each run that leaves - the first is returned. Decisions that are kept no
    longer are made again, which takes as long as a cycle; all others are read in a few milliseconds.

    Args:
        reader: The ledger.
        cluster: The cluster.
        workload: The workload.
        at_s: Look only at cycles that decided for this instant or an earlier one.
        seq: Look only at rows of the book up to this one.

    Raises:
        Refused: When the state of a cycle cannot be read any more.
    """
    named = cycles.named(reader, cluster, at_s, seq=seq)
    if named is None:
        return None
    for amendment in cycles.amendments(reader, named.place(cluster), at_s=at_s, seq=seq)[::-1]:
        for decision in amendment.said_of(workload):
            return Recorded(amendment.amended.cycle, amendment.at_s, decision)
    found = kept.of_workload(reader, cluster, named.seq, workload)
    if found is None:
        recorded = cycles.find(reader, named.cycle)
        assert recorded is not None  # noqa: S101 - its name was read from it
        found = [one for one in _every(reader, cluster, recorded) if one["workload"] == workload]
    return Recorded(named.cycle, named.at_s, found[0]) if found else None


def whole(reader: Reader, cluster: str, recorded: cycles.Recorded) -> dict[str, Any]:
    """Return a recorded cycle under the published keys with every decision, those to wait too."""
    return {**recorded.issued.record, "decisions": _every(reader, cluster, recorded)}


def _every(reader: Reader, cluster: str, recorded: cycles.Recorded) -> list[dict[str, Any]]:
    found = kept.decisions_of(reader, cluster, recorded)
    return list(recompute(reader, recorded).published["decisions"] if found is None else found)
