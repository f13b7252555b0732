"""From charged time that was not used to its page: by account, by person, by day, beside the budget. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from gpuledger.client.waiting import WasteRow
from gpuledger.kernel.amounts import gpu_hours
from gpuledger_dashboards import budgets, empty
from gpuledger_dashboards.figures import UNKNOWN, hours, percent, share

SQUATTED, IDLE, LOW, REST, UNMEASURED = (
    "Squatted: idle for more than 30 min",
    "Idle for less",
    "Little used: 5 to 15 %",
    "Used more",
    "Not measured",
)
"""What charged time is made of; the parts sum to it."""

MEANING = (
    "Idle means that all GPUs of a run together were used below 5 % in five minutes. It says nothing of why: data that "
    "load slowly, a debugger that waits, a job that hung, a notebook over lunch. Whoever is named here may know best, "
    "and may not know yet."
)
SHOWN_MAX = 50
"""Rows of people that the page shows; the download has all."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of one account's or one day's charged time, in GPU-hours."""

    key: str
    part: str
    order: int
    gpu_hours: float
    text: str


def parts_of(row: WasteRow) -> dict[str, int]:
    """Return the parts of a row in gpu_ms; they sum to its charged time."""
    measured = min(row.sampled_gpu_ms, row.allocated_gpu_ms)
    return {
        SQUATTED: row.squatted_gpu_ms,
        IDLE: row.idle_gpu_ms - row.squatted_gpu_ms,
        LOW: row.low_gpu_ms,
        REST: measured - row.idle_gpu_ms - row.low_gpu_ms,
        UNMEASURED: row.allocated_gpu_ms - measured,
    }


def parts(rows: Iterable[WasteRow], *, within_account: bool = True) -> list[Part]:
    """Return what each row's charged time is made of, for a chart."""
    return [
        Part(
            budgets.label(row.key) if within_account else row.key,
            part,
            order,
            float(gpu_hours(amount)),
            f"{part}: {hours(amount)} GPU-h",
        )
        for row in rows
        for order, (part, amount) in enumerate(parts_of(row).items())
        if amount > 0
    ]


def headline(total: WasteRow) -> str:
    """Return the period in one sentence."""
    if not total.sampled_gpu_ms:
        return f"{hours(total.allocated_gpu_ms)} GPU-h were charged, and none of them was measured."
    said = (
        f"Of {hours(total.sampled_gpu_ms)} measured GPU-h that were paid for, {hours(total.idle_gpu_ms)} were idle"
        f" ({percent(total.idle_of_sampled)}); {hours(total.squatted_gpu_ms)} of them for more than 30 minutes at a"
        " stretch"
    )
    if total.squatted_of_budget is not None:
        said += f", which is {percent(total.squatted_of_budget)} of the budgets"
    return f"{said}."


def account_table(rows: Sequence[WasteRow]) -> list[dict[str, str]]:
    """Return the accounts as rows of a table, who squatted most first."""
    return [{"Account": row.key, **_cells(row)} for row in rows]


def day_table(rows: Sequence[WasteRow]) -> list[dict[str, str]]:
    """Return the days as rows of a table."""
    return [
        {
            "Day": row.key,
            **{part: hours(amount) for part, amount in parts_of(row).items()},
        }
        for row in rows
    ]


def user_table(rows: Sequence[WasteRow]) -> list[dict[str, str]]:
    """Return people as rows of a table, in the order of what was squatted."""
    return [
        {"Person": f"{row.key}, {row.account}", **_cells(row)}
        for row in rows[:SHOWN_MAX]
        if row.idle_gpu_ms or row.low_gpu_ms
    ]


def _cells(row: WasteRow) -> dict[str, str]:
    return {
        "Charged": hours(row.allocated_gpu_ms),
        "Measured": percent(row.coverage) if row.coverage is not None else "none",
        "Idle": _if_measured(row, row.idle_gpu_ms),
        "Squatted": _if_measured(row, row.squatted_gpu_ms),
        "of budget": _of_budget(row),
        "Little used": _if_measured(row, row.low_gpu_ms),
        "of measured": share(row.idle_gpu_ms + row.low_gpu_ms, row.sampled_gpu_ms or None),
    }


def _of_budget(row: WasteRow) -> str:
    if not row.sampled_gpu_ms:
        return UNKNOWN
    return "no budget" if row.squatted_of_budget is None else percent(row.squatted_of_budget)


def _if_measured(row: WasteRow, gpu_ms: int) -> str:
    """Return an amount; unknown where nothing was measured, for missing is not nothing."""
    return hours(gpu_ms) if row.sampled_gpu_ms else UNKNOWN


def coverage_of(total: WasteRow | None) -> str:
    """Return how much of the charged time was measured."""
    known: Decimal | None = None if total is None else total.coverage
    return f"{percent(known)} of charged GPU-time measured"


def csv_rows(rows: Iterable[WasteRow]) -> list[Mapping[str, object]]:
    """Return rows for a download."""
    return [
        {
            "key": row.key, "cluster": row.cluster, "account": row.account, "allocated_gpu_ms": row.allocated_gpu_ms,
            "sampled_gpu_ms": row.sampled_gpu_ms, "used_gpu_ms": row.used_gpu_ms, "idle_gpu_ms": row.idle_gpu_ms,
            "squatted_gpu_ms": row.squatted_gpu_ms, "low_gpu_ms": row.low_gpu_ms,
            "squatting_run_count": row.squatting_run_count, "budget_gpu_ms": row.budget_gpu_ms,
            "coverage": row.coverage, "squatted_of_budget": row.squatted_of_budget,
        }
        for row in rows
    ]  # fmt: skip


def no_waste(cluster: str) -> empty.Why:
    """Return why there is nothing to show."""
    return empty.Why(
        f"No charged time of {cluster} is rolled up in any period.",
        "Runs of the class allocated are charged; roll their days up.",
        empty.ROLL_UP,
    )


def not_measured() -> empty.Why:
    """Return why nothing is known of how much was used."""
    return empty.Why(
        "None of the charged time of this period was measured, so that nobody knows what of it was idle.",
        "An agent on each host measures; job records with a measured load do, too.",
        "gpuledger agent nvml --help",
    )
