"""What the newest cycle orders, for schedulers that take orders: what to start where, and what has to leave by when."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from gpuledger.database.engine import Reader
from gpuledger.kernel.clock import instant, iso
from gpuledger.ledger import cycles
from gpuledger.policy.decisions import Action
from gpuledger.policy.published import reservations_of
from gpuledger.policy.state import ReservationKind, RunId


class Directives(NamedTuple):
    """The orders of a cycle.

    Args:
        cursor: Stands for everything up to this cycle: asked again with it, nothing comes until there is a newer one.
        cycle: The cycle's id.
        at_s: The instant that it decided for.
        starts: ``{workload, hosts, reason}``, in their order; hosts in milli-GPU, empty where none are known.
        preemptions: ``{workload, run, leave_by, reason}``; ``leave_by`` is the instant at which the GPUs are expected
            back, a grace after the cycle that promised them, or after the newest where a host is emptied. What a
            reservation will take was announced before (``workload.preemption_announced``).
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
    promised_s = _promised_s(found.issued.record)
    soonest_s = found.at_s + int(found.issued.config.get("grace_s", 0))
    starts, preemptions = [], []
    for decision in found.issued.record.get("decisions", ()):
        told = {"workload": decision["workload"], "reason": decision["reason"]}
        if decision["action"] == Action.START:
            starts.append({**told, "hosts": decision.get("hosts", {})})
        elif decision["action"] == Action.PREEMPT:
            leaves_s = promised_s.get(RunId(decision["workload"], decision["run"]), soonest_s)
            preemptions.append({**told, "run": decision["run"], "leave_by": iso(instant(leaves_s))})
    return Directives(found.seq, found.issued.cycle, found.at_s, starts, preemptions)


def _promised_s(record: Mapping[str, Any]) -> dict[RunId, int]:
    """Return run -> when its GPUs were promised for: later cycles repeat the order, and do not put that off."""
    found: dict[RunId, int] = {}
    for kept in reservations_of(record):
        for run in kept.leaving if kept.kind is ReservationKind.PROMISE else ():
            found[run] = max(kept.at_s, found.get(run, kept.at_s))
    return found
