"""Answers to shape, small enough to be checked by eye."""

from decimal import Decimal
from typing import Any

from gpuledger.client import answers, stories

HOUR = 3_600_000


def layers_row(key: str = "alpha", **changes: object) -> answers.LayersRow:
    """A hundred GPU-hours installed, 90 healthy, 80 held, 60 of 75 owed delivered, half of 40 sampled busy."""
    known: dict[str, Any] = {
        "key": key,
        "installed_gpu_ms": 100 * HOUR,
        "availability": Decimal("0.9000"),
        "occupancy": Decimal("0.8889"),
        "occupancy_with_overhead": Decimal("0.8889"),
        "impact": answers.Impact(window=Decimal("0.8000"), hourly=Decimal("0.7000"), raw=Decimal("1.0610")),
        "utilisation": answers.Utilisation(
            value=Decimal("0.5000"), rung="gpu_util", coverage=Decimal("0.5000")
        ),
        "residual_gpu_ms": 0,
        "reason": None,
        "reasons": {},
        "healthy_gpu_ms": 90 * HOUR,
        "usable_gpu_ms": 90 * HOUR,
        "occupied_gpu_ms": 80 * HOUR,
        "occupied_with_inventory_gpu_ms": 80 * HOUR,
        "allocated_gpu_ms": 70 * HOUR,
        "unallocated_gpu_ms": 10 * HOUR,
        "owed_gpu_ms": 75 * HOUR,
        "delivered_gpu_ms": 80 * HOUR,
        "window_met_gpu_ms": 60 * HOUR,
        "sampled_gpu_ms": 40 * HOUR,
        "used_gpu_ms": 20 * HOUR,
    }
    return answers.LayersRow(**(known | changes))


def unknown_row(key: str = "beta") -> answers.LayersRow:
    """Neither inventory nor samples."""
    reasons = dict.fromkeys(("availability", "occupancy", "impact"), "no inventory of this cluster")
    return layers_row(
        key,
        installed_gpu_ms=None,
        availability=None,
        occupancy=None,
        occupancy_with_overhead=None,
        impact=answers.Impact(window=None, hourly=None, raw=None),
        utilisation=answers.Utilisation(value=None, rung="gpu_util", coverage=Decimal("0.0000")),
        reason="no inventory of this cluster",
        reasons=reasons | {"utilisation": "no sample of utilisation in this window"},
        healthy_gpu_ms=None,
        usable_gpu_ms=None,
        occupied_with_inventory_gpu_ms=None,
        owed_gpu_ms=None,
        delivered_gpu_ms=None,
        window_met_gpu_ms=None,
        sampled_gpu_ms=0,
        used_gpu_ms=0,
    )


def layers(*rows: answers.LayersRow, by: str = "day") -> answers.Layers:
    """An answer of the layers' path."""
    return answers.Layers(
        rows=rows, by=by, cluster="alpha", from_=None, to=None, timezone="UTC", as_of="2026-03-11T06:00:00Z"
    )


def status(
    cluster: str = "alpha", *, rolled_up: bool = True, periods: tuple[str, ...] = ("2026-01", "2026-02")
) -> answers.ClusterStatus:
    """A cluster rolled up from 10 January to the end of 10 March, or not at all."""
    return answers.ClusterStatus(
        cluster=cluster,
        rows=1200,
        last_recorded_at="2026-03-11T06:00:00Z",
        rolled_up_from="2026-01-10T00:00:00Z" if rolled_up else None,
        rolled_up_to="2026-03-11T00:00:00Z" if rolled_up else None,
        periods=periods,
        reason=None,
    )


def budget_row(account: str, budget: int, charged: int, **changes: int | None) -> answers.BudgetRow:
    """A row whose variance is all demand; amounts in GPU-hours."""
    hours: dict[str, int | None] = {
        "budget": budget, "transferred": 0, "charged": charged, "held": 0, "credited": 0, "expired": 0,
        "available": budget - charged, "unallocated": 1, "entitlement": budget, "demand": charged,
        "owed": charged, "delivered": charged, "variance_transfer": 0, "variance_expiry": 0,
        "variance_capacity": 0, "variance_demand": budget - charged, "variance_scheduler": 0,
        "variance_credit": 0,
    }  # fmt: skip
    hours |= changes
    amounts = {f"{name}_gpu_ms": None if value is None else value * HOUR for name, value in hours.items()}
    reason = "no inventory of this cluster" if hours["owed"] is None else None
    return answers.BudgetRow(
        account=account, cluster=account.partition("/")[0], period="2026-02", reason=reason, **amounts
    )


UNKNOWN = dict.fromkeys(
    (
        "entitlement", "demand", "owed", "delivered", "variance_transfer", "variance_expiry", "variance_capacity",
        "variance_demand", "variance_scheduler", "variance_credit",
    )
)  # fmt: skip
"""What a row does not know without inventory."""


def budget(*rows: answers.BudgetRow) -> answers.BudgetVersusActual:
    """An answer of the budget's path."""
    return answers.BudgetVersusActual(
        rows=rows,
        cluster="alpha",
        period="2026-02",
        periods=("2026-01", "2026-02"),
        from_="2026-02-01T00:00:00Z",
        to="2026-03-01T00:00:00Z",
        timezone="UTC",
        as_of="2026-03-11T06:00:00Z",
    )


def story(
    *events: tuple[str, str, str, str | None],
    state: str = "over",
    gpus_milli: int = 8000,
    decided: bool = True,
) -> stories.Workload:
    """A workload's story of one day, told at 14:00; events are (time, what, text, run)."""
    decision = stories.WorkloadDecision(
        cycle="alpha@1", at="2026-03-11T14:00:00Z", action="wait", reason="Waits for 8 GPUs on one host.",
        chain=(stories.Level(account="alpha", ratio="0.500000", used_gpu_ms=HOUR, entitled_gpu_ms=2 * HOUR,
                             before=({"account": "beta", "ratio": "0.400000"},)),),
        starts_by="2026-03-11T15:00:00Z", certainty="bound",
    )  # fmt: skip
    return stories.Workload(
        workload="8851",
        cluster="alpha",
        at="2026-03-11T14:00:00Z",
        account="alpha/a",
        state=state,
        gpus_milli=gpus_milli,
        events=tuple(
            stories.Happening(at=f"2026-03-11T{at}:00Z", what=what, text=text, run=run, estimated=False)
            for at, what, text, run in events
        ),
        cost=stories.Cost(
            charged_gpu_ms=16 * HOUR, unallocated_gpu_ms=0, credited_gpu_ms=0, not_booked_yet_gpu_ms=0
        ),
        decision=decision if decided else None,
        ahead=None,
        as_of="2026-03-11T14:00:00Z",
    )


def allocation(account: str, ratio: str | None, used: int = 50, issued: int = 8) -> answers.Allocation:
    """An account that is entitled to a hundred GPU-hours over the window."""
    return answers.Allocation(
        account=account, share_ppm=500_000, used_gpu_ms=used * HOUR, entitled_gpu_ms=100 * HOUR, ratio=ratio,
        demand_gpus=2 * issued, issued_gpus=issued,
    )  # fmt: skip


def cycle(*allocations: answers.Allocation, waiting: int = 2) -> answers.Cycle:
    """A cycle over 16 GPUs, in which some workloads wait."""
    decisions = tuple(
        answers.Decision(
            workload=f"w{n}", action="wait", reason=f"Waits at place {n}.", numbers={"position": n}
        )
        for n in range(1, waiting + 1)
    )
    return answers.Cycle(
        cluster="alpha",
        cursor=41,
        cycle="alpha@1",
        supply_gpus=16,
        allocations=allocations
        or (allocation("alpha/b", "0.900000", 90), allocation("alpha/a", "0.400000", 40)),
        decisions=decisions,
        as_of="2026-03-11T06:00:00Z",
    )
