"""A cycle under its published keys, and the reservations read back from them."""

import datetime as dt
from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.clock import instant, iso, seconds
from gpuledger.kernel.collecting import without_cycles
from gpuledger.policy import explain
from gpuledger.policy.credits import Credit
from gpuledger.policy.cycle import Allocation, Cycle, Decision, Reservation, ReservationKind, RunId, Shared
from gpuledger.policy.words import gpus_text


class AllocationJson(TypedDict):
    """An allocation as published."""

    account: str
    share_ppm: int
    used_gpu_ms: int
    entitled_gpu_ms: int
    par_gpu_ms: int
    ratio: str | None
    demand_gpus: int | str
    issued_gpus: int | str
    credits_gpu_ms: NotRequired[int]
    credit_flow_milli: NotRequired[int]


class DecisionJson(TypedDict):
    """A decision as published: a start says on which hosts, in milli-GPU, a preemption says which run."""

    workload: str
    action: str
    reason: str
    numbers: dict[str, int]
    hosts: NotRequired[dict[str, int]]
    run: NotRequired[str]


class RunJson(TypedDict):
    """What names a run."""

    workload: str
    run: str


class ReservationJson(TypedDict):
    """A reservation as published; hosts in milli-GPU."""

    workload: str
    hosts: dict[str, int]
    at: str
    kind: str
    leaving: list[RunJson]


class CycleJson(TypedDict):
    """A cycle as published."""

    cluster: str
    cycle: str
    supply_gpus: int | str
    allocations: list[AllocationJson]
    decisions: list[DecisionJson]
    reservations: list[ReservationJson]


def as_json(cycle: Cycle, *, cycle_id: str | None = None) -> CycleJson:
    """Return the cycle under its published keys.

    GPUs are integers when whole, else strings with three decimals. A ratio is a string with six decimals,
    half to even, or None for an account that is entitled to nothing.

    Args:
        cycle: The cycle.
        cycle_id: Its name; ``CLUSTER@SECONDS`` unless given.
    """
    return {
        "cluster": cycle.cluster,
        "cycle": cycle_id or f"{cycle.cluster}@{cycle.at_s}",
        "supply_gpus": _gpus_json(cycle.supply_milli),
        "allocations": [_allocation_json(allocation) for allocation in cycle.allocations],
        "decisions": _decisions_json(cycle),
        "reservations": [
            {
                "workload": kept.workload,
                "hosts": dict(sorted(kept.placement.items())),
                "at": iso(instant(kept.at_s)),
                "kind": kept.kind.value,
                "leaving": [{"workload": run.workload, "run": run.run} for run in kept.leaving],
            }
            for kept in cycle.reservations
        ],
    }


def reservations_of(record: Mapping[str, Any]) -> tuple[Reservation, ...]:
    """Return the reservations of a published cycle; none in a record from before there were any."""
    return tuple(
        Reservation(
            workload=kept["workload"],
            placement=kept["hosts"],
            at_s=seconds(dt.datetime.fromisoformat(kept["at"])),
            kind=ReservationKind(kept["kind"]),
            leaving=tuple(RunId(run["workload"], run["run"]) for run in kept["leaving"]),
        )
        for kept in record.get("reservations", ())
    )


def credits_of(record: Mapping[str, Any], seconds_since: int) -> dict[str, int]:
    """Return account -> credits so long after a published cycle; none where it did not divide by them."""
    return {
        row["account"]: Credit(row["credits_gpu_ms"], row["credit_flow_milli"]).after(seconds_since)
        for row in record["allocations"]
        if "credits_gpu_ms" in row
    }


def _allocation_json(allocation: Allocation) -> AllocationJson:
    published: AllocationJson = {
        "account": allocation.account,
        "share_ppm": allocation.share_ppm,
        "used_gpu_ms": allocation.used_gpu_ms,
        "entitled_gpu_ms": allocation.entitled_gpu_ms,
        "par_gpu_ms": allocation.par_gpu_ms,
        "ratio": explain.ratio_text(allocation.ratio_num, allocation.ratio_den),
        "demand_gpus": _gpus_json(allocation.demand_milli),
        "issued_gpus": _gpus_json(allocation.issued_milli),
    }
    if allocation.credit is not None:
        published["credits_gpu_ms"] = allocation.credit.gpu_ms
        published["credit_flow_milli"] = allocation.credit.flow_milli
    return published


def _decisions_json(cycle: Cycle) -> list[DecisionJson]:
    with without_cycles():  # nothing that is published refers to itself
        return [decision_json(decision) for decision in cycle.decisions]


def decision_json(decision: Decision | Shared) -> DecisionJson:
    """Return a decision under its published keys."""
    reason, numbers = decision.told()
    published: DecisionJson = {
        "workload": decision.workload,
        "action": decision.action.value,
        "reason": reason,
        "numbers": numbers,
    }
    if isinstance(decision, Shared):
        return published
    if decision.placement:
        published["hosts"] = dict(sorted(decision.placement.items()))
    if decision.run is not None:
        published["run"] = decision.run
    return published


def milli_of(published: int | str) -> int:
    """Return GPUs as published (an integer, or a string with three decimals) in milli-GPU."""
    whole, _, part = str(published).partition(".")
    return int(whole) * GPU_MILLI + int((part + "000")[:3])


def _gpus_json(gpus_milli: int) -> int | str:
    return gpus_text(gpus_milli) if gpus_milli % GPU_MILLI else gpus_milli // GPU_MILLI
