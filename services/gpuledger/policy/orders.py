"""What the newest cycle orders, for schedulers that take orders: what to start where, and what has to leave by when."""

from typing import Any, NamedTuple

from gpuledger.database.engine import Reader
from gpuledger.kernel.clock import instant, iso
from gpuledger.ledger import cycles
from gpuledger.policy.decisions import Action


class Directives(NamedTuple):
    """The orders of a cycle.

    Args:
        cursor: Stands for everything up to this cycle: asked again with it, nothing comes until there is a newer one.
        cycle: The cycle's id.
        at_s: The instant that it decided for.
        starts: ``{workload, hosts, reason}``, in their order; hosts in milli-GPU, empty where none are known.
        preemptions: ``{workload, run, leave_by, reason}``; ``leave_by`` is the instant at which the GPUs are expected
            back, a grace after the order. What a reservation will take was announced before
            (``workload.preemption_announced``).
    """

    cursor: int
    cycle: str
    at_s: int
    starts: list[dict[str, Any]]
    preemptions: list[dict[str, Any]]


def directives(reader: Reader, cluster: str, *, now_s: int, after: int | None = None) -> Directives | None:
    """Return what the newest cycle of a cluster orders; None when there was none, or none after a cursor.

    Each cycle says everything anew: orders of an earlier one that it does not repeat are void.

    Args:
        reader: The ledger.
        cluster: The cluster.
        now_s: The present; cycles of a later instant give no orders yet.
        after: The cursor of the orders that were taken last.
    """
    found = cycles.latest(reader, cluster, at_s=now_s)
    if found is None or found.seq == after:
        return None
    leave_by = iso(instant(found.at_s + int(found.issued.config.get("grace_s", 0))))
    starts, preemptions = [], []
    for decision in found.issued.record.get("decisions", ()):
        told = {"workload": decision["workload"], "reason": decision["reason"]}
        if decision["action"] == Action.START:
            starts.append({**told, "hosts": decision.get("hosts", {})})
        elif decision["action"] == Action.PREEMPT:
            preemptions.append({**told, "run": decision["run"], "leave_by": leave_by})
    return Directives(found.seq, found.issued.cycle, found.at_s, starts, preemptions)
