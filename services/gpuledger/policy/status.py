"""What the newest cycle of each cluster came to, and who leads: for whoever watches.

Written with the record of a cycle, in its transaction; read by the API's metrics and by ``gpuledger policy status``.
"""

import datetime as dt
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from gpuledger.database.engine import Writer
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.clock import instant, iso
from gpuledger.ledger import policy_status
from gpuledger.policy.outcomes import Action
from gpuledger.policy.recording import Decided

SIZES = ((1, "1"), (8, "2-8"), (64, "9-64"))
"""Classes of waiting work by whole GPUs: up to how many, and its name."""

LARGEST = "65-"


class Figures(NamedTuple):
    """What a cycle counted.

    Args:
        waiting: Size class -> workloads that wait.
        owed_gpu_ms: What accounts with demand have used less than they were entitled to over the window, in all.
        over_service_gpu_ms: What accounts have used beyond it, in all.
        orders: Action -> how many workloads are to start, and how many runs are to leave.
    """

    waiting: Mapping[str, int]
    owed_gpu_ms: int
    over_service_gpu_ms: int
    orders: Mapping[str, int]


def figures(record: Mapping[str, Any], waiting_milli: Mapping[int, int]) -> Figures:
    """Count what a cycle says.

    Args:
        record: What is journalled of it: its allocations, and its decisions but those to wait.
        waiting_milli: Milli-GPU -> how many wait for so many.
    """
    waiting = Counter(dict.fromkeys((*(name for _, name in SIZES), LARGEST), 0))
    for gpus_milli, count in waiting_milli.items():
        waiting[_size(gpus_milli)] += count
    orders = Counter({Action.START.value: 0, Action.PREEMPT.value: 0})
    orders.update(decision["action"] for decision in record["decisions"])
    paths = {row["account"] for row in record["allocations"]}
    inner = {path.rpartition("/")[0] for path in paths}
    owed = over = 0
    for row in record["allocations"]:
        if row["account"] in inner:
            continue
        short = row["entitled_gpu_ms"] - row["used_gpu_ms"]
        over += max(-short, 0)
        owed += max(short, 0) if row["demand_gpus"] else 0
    return Figures(waiting, owed, over, orders)


def note(writer: Writer, decided: Decided, *, took_ms: int, now: dt.datetime) -> None:
    """Say what a cycle came to, in the transaction that records it.

    Args:
        writer: The transaction.
        decided: The cycle.
        took_ms: How long it took, from reading the state on.
        now: When it is recorded.
    """
    policy_status.write(
        writer,
        decided.issued.cluster,
        policy_status.Newest(decided.issued.cycle, instant(decided.at_s), now, took_ms),
        msgspec.to_builtins(figures(decided.issued.record, decided.written.waiting_milli)._asdict()),
    )


def as_json(status: policy_status.Status, now: dt.datetime) -> dict[str, Any]:
    """Return how the policy's service is for a cluster, under the published keys; unknown is null.

    Args:
        status: What the database knows.
        now: The present; ages count up to it.
    """
    newest, counted = status.newest, status.figures
    return {
        "cluster": status.cluster,
        "leader": status.leader,
        "cycle": newest and newest.cycle,
        "decided_at": newest and iso(newest.decided_at),
        "age_s": newest and int((now - newest.decided_at).total_seconds()),
        "took_ms": newest and newest.took_ms,
        "cycles": status.cycles,
        "amendments": status.amendments,
        "waiting": dict(counted.get("waiting", {})),
        "orders": dict(counted.get("orders", {})),
        "owed_gpu_ms": counted.get("owed_gpu_ms"),
        "over_service_gpu_ms": counted.get("over_service_gpu_ms"),
    }


def _size(gpus_milli: int) -> str:
    gpus = -(-gpus_milli // GPU_MILLI)
    return next((name for most, name in SIZES if gpus <= most), LARGEST)
