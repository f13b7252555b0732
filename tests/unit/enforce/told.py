"""Cycles and ledgers, made for tests."""

from typing import Any

from gpuledger.enforce.facts import Facts
from gpuledger.policy.state import RunId, RunningRun

NOW_S = 1_796_040_000
CYCLE = "alpha@2026-11-30T12:00:00Z#0123456789ab"


def allocation(account: str, share_ppm: int, issued: int | str, demand: int | str) -> dict[str, Any]:
    return {
        "account": account, "share_ppm": share_ppm, "used_gpu_ms": 0, "entitled_gpu_ms": 0, "ratio": None,
        "demand_gpus": demand, "issued_gpus": issued,
    }  # fmt: skip


def waits(workload: str, position: int) -> dict[str, Any]:
    return {"workload": workload, "action": "wait", "reason": "Waits.", "numbers": {"position": position}}


def starts(workload: str, position: int, **hosts: int) -> dict[str, Any]:
    return {
        "workload": workload, "action": "start", "reason": "Starts.", "numbers": {"position": position},
        "hosts": hosts,
    }  # fmt: skip


def leaves(workload: str, run: str) -> dict[str, Any]:
    return {"workload": workload, "run": run, "action": "preempt", "reason": "Leaves for x.", "numbers": {}}


def record(
    *decisions: dict[str, Any], allocations: tuple[dict[str, Any], ...] = (), supply: int | str = 16
) -> dict[str, Any]:
    return {
        "cluster": "alpha", "cycle": CYCLE, "supply_gpus": supply, "allocations": list(allocations),
        "decisions": list(decisions), "reservations": [],
    }  # fmt: skip


def run(workload: str, name: str, *, protected_for_s: int, klass: Any = "allocated") -> RunningRun:  # noqa: ANN401
    return RunningRun(
        workload=workload, run=name, account="org/a", gpus_milli=8000, started_at_s=NOW_S - 100,
        protected_until_s=NOW_S + protected_for_s, klass=klass,
    )  # fmt: skip


def facts(cycle: dict[str, Any], *runs: RunningRun, age_s: int = 0, **more: Any) -> Facts:  # noqa: ANN401
    running = {RunId(one.workload, one.run): one for one in runs}
    return Facts(record=cycle, cycle_at_s=NOW_S - age_s, now_s=NOW_S, running=running, **more)


TREE = (
    allocation("org", 1_000_000, 16, 24),
    allocation("org/a", 250_000, 6, 16),
    allocation("org/b", 750_000, "10.500", 12),
    allocation("org/c", 0, 0, 8),
)
