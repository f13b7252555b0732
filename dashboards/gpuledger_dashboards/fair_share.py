"""From the newest cycle to the page of fair share: who was served how far, who comes next, and why. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from gpuledger.client.answers import Allocation, Cycle, Decision
from gpuledger.kernel.amounts import gpu_hours
from gpuledger_dashboards import empty
from gpuledger_dashboards.figures import hours, percent

ENTITLED, USED = "Entitled", "Used"

NEXT_SHOWN = 20
"""Decisions that the page shows; the download has all that were kept."""

_ACTIONS = {"start": "starts", "wait": "waits", "preempt": "leaves"}


@dataclass(frozen=True, slots=True)
class Bar:
    """What an account was entitled to, or used, over the window."""

    account: str
    part: str
    gpu_hours: float
    text: str


def served_least_first(cycle: Cycle) -> list[Allocation]:
    """Return the accounts in the order in which they are served; those that are entitled to nothing come last."""
    return sorted(
        cycle.allocations, key=lambda one: (one.ratio is None, Decimal(one.ratio or 0), one.account)
    )


def headline(cycle: Cycle) -> str:
    """Return the cycle in one sentence: what there is, what was issued, who comes first and who has had most."""
    issued = sum(Decimal(str(one.issued_gpus)) for one in cycle.allocations)
    known = [one for one in served_least_first(cycle) if one.ratio is not None]
    said = f"{issued:f} of {cycle.supply_gpus} GPUs are issued"
    if len(known) > 1:
        first, last = known[0], known[-1]
        said += f"; {first.account} was served least ({first.ratio}), {last.account} most ({last.ratio})"
    return f"{said}."


def bars(allocations: Sequence[Allocation]) -> list[Bar]:
    """Return two bars per account."""
    found = []
    for one in allocations:
        for part, amount in ((ENTITLED, one.entitled_gpu_ms), (USED, one.used_gpu_ms)):
            found.append(Bar(one.account, part, float(gpu_hours(amount)), f"{part} {hours(amount)}"))
    return found


def table(allocations: Sequence[Allocation]) -> list[dict[str, str]]:
    """Return the accounts as rows of a table, in GPU-hours and GPUs."""
    return [
        {
            "Account": one.account,
            "Share": percent(Decimal(one.share_ppm) / 1_000_000),
            "Used": hours(one.used_gpu_ms),
            "Entitled": hours(one.entitled_gpu_ms),
            "Served": "entitled to nothing" if one.ratio is None else one.ratio,
            "Asks for": f"{one.demand_gpus} GPUs",
            "Issued": f"{one.issued_gpus} GPUs",
        }
        for one in allocations
    ]


def order(decisions: Sequence[Decision]) -> list[dict[str, str]]:
    """Return what was decided about workloads, in the order of the cycle, each with its sentence."""
    return [
        {
            "Workload": one.workload,
            "Decision": _ACTIONS.get(one.action, one.action),
            "Why": one.reason,
        }
        for one in decisions[:NEXT_SHOWN]
    ]


def csv_rows(cycle: Cycle) -> list[Mapping[str, object]]:
    """Return the accounts as rows of a download."""
    return [
        {
            "account": one.account, "share_ppm": one.share_ppm, "used_gpu_ms": one.used_gpu_ms,
            "entitled_gpu_ms": one.entitled_gpu_ms, "ratio": one.ratio, "demand_gpus": one.demand_gpus,
            "issued_gpus": one.issued_gpus,
        }
        for one in cycle.allocations
    ]  # fmt: skip


def nobody() -> empty.Why:
    """Return why a cycle has no account."""
    return empty.Why(
        "The newest cycle has no account of yours.",
        "Shares are set in a budget file; what nobody has a share of is issued to nobody.",
        empty.BUDGET_FILE,
    )
