"""What the policy decided: the recorded decision of one workload, read back."""

from typing import Any, NamedTuple

from gpuledger.database.engine import Reader
from gpuledger.ledger import cycles


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


def decision_of(reader: Reader, cluster: str, workload: str, at_s: int | None = None) -> Recorded | None:
    """Return what the newest cycle decided for a workload; None when it decided nothing for it, or there was none.

    Args:
        reader: The ledger.
        cluster: The cluster.
        workload: The workload.
        at_s: Look only at cycles that decided for this instant or an earlier one.
    """
    found = cycles.latest(reader, cluster, at_s=at_s)
    if found is None:
        return None
    for decision in found.issued.record["decisions"]:
        if decision["workload"] == workload:
            return Recorded(found.issued.cycle, found.at_s, decision)
    return None
