"""Budget versus actual as the warehouse keeps it: periods, rows, and what is shown when a period is asked for."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from gpuledger.database.engine import Reader
from gpuledger.kernel.accounts import own_path
from gpuledger.kernel.errors import NotFound
from gpuledger.warehouse.forecasts import UNSEEN, forecasts
from gpuledger.warehouse.tables import budget_vs_actual

ROLL_UP = "gpuledger rollup"
NO_INVENTORY = (
    "no inventory of this cluster, so no entitlement: name its GPUs in a budget file, then "
    f"gpuledger budget apply FILE and {ROLL_UP}"
)


@dataclass(frozen=True, slots=True)
class BudgetReport:
    """Budget versus actual of one period.

    Args:
        period: The period asked for, else the newest there is; None when nothing has been rolled up.
        periods: The periods there are, oldest first.
        rows: A row for each account, by cluster and account, each with the reason why columns are null, and with what
            is foreseen of it.
    """

    period: str | None
    periods: list[str]
    rows: list[dict[str, Any]]


def report(reader: Reader, cluster: str | None, period: str | None, inner: Collection[str]) -> BudgetReport:
    """Return budget versus actual of a period, the newest unless given.

    Args:
        reader: A snapshot.
        cluster: One cluster, or all of them.
        period: Such as ``2017-10``.
        inner: Accounts that have others below them: what they own themselves is a leaf of its own.

    Raises:
        NotFound: When there are periods, and the one asked for is none of them.
    """
    every = periods(reader)
    known = sorted({key for name, keys in every.items() if cluster in (None, name) for key in keys})
    chosen = period or (known[-1] if known else None)
    if period is not None and known and period not in known:
        raise NotFound(
            f"no budget of {cluster or 'any cluster'} in {period}",
            hint=f"periods there are: {known[0]} to {known[-1]}; {ROLL_UP} makes newer ones",
        )
    rows = budget_rows(reader, cluster, chosen) if chosen else []
    foreseen = forecasts(reader, cluster, chosen) if chosen else {}
    told = [
        {
            **row,
            "account": own_path(row["account"]) if row["account"] in inner else row["account"],
            "reason": NO_INVENTORY if row["owed_gpu_ms"] is None else None,
            "forecast": foreseen.get((row["cluster"], row["period"], row["account"]), UNSEEN).as_json(row),
        }
        for row in rows
    ]
    return BudgetReport(chosen, known, told)


def periods(reader: Reader) -> dict[str, list[str]]:
    """Return cluster -> the periods that have budget-versus-actual rows, oldest first."""
    column = budget_vs_actual.c
    found: dict[str, list[str]] = {}
    statement = sa.select(column.cluster, column.period).distinct().order_by(column.cluster, column.period)
    for cluster, period in reader.execute(statement):
        found.setdefault(cluster, []).append(period)
    return found


def budget_rows(reader: Reader, cluster: str | None, period: str | None) -> list[dict[str, Any]]:
    """Return the rows of budget versus actual, by cluster, period and account."""
    column = budget_vs_actual.c
    statement = sa.select(budget_vs_actual).order_by(column.cluster, column.period, column.account)
    if cluster is not None:
        statement = statement.where(column.cluster == cluster)
    if period is not None:
        statement = statement.where(column.period == period)
    return [dict(row) for row in reader.execute(statement).mappings()]
