"""Charged time that was measured and not used, as the warehouse keeps it, with the account's budget beside it.

What has no sample is unknown: it is in no column but ``allocated``, and the coverage says how much that is.
"""

import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, assert_never

import sqlalchemy as sa

from gpuledger.database.engine import Reader
from gpuledger.kernel.accounts import own_path
from gpuledger.kernel.errors import NotFound
from gpuledger.warehouse.budgets import ROLL_UP
from gpuledger.warehouse.readings import ratio
from gpuledger.warehouse.reads import require_state_of
from gpuledger.warehouse.subtree import is_below
from gpuledger.warehouse.tables import budget_vs_actual, waste_day

AMOUNTS = (
    "allocated_gpu_ms",
    "sampled_gpu_ms",
    "used_gpu_ms",
    "idle_gpu_ms",
    "squatted_gpu_ms",
    "low_gpu_ms",
)
_PERIOD = sa.literal_column("to_char(waste_day.day, 'YYYY-MM')", sa.Text)
_DAY = sa.literal_column("to_char(waste_day.day, 'YYYY-MM-DD')", sa.Text)
_TOTAL = sa.literal_column("'total'::text", sa.Text)


class WasteBy(StrEnum):
    """What the rows are keyed by; ``user`` keeps people of several accounts apart."""

    ACCOUNT = "account"
    USER = "user"
    DAY = "day"
    TOTAL = "total"


@dataclass(frozen=True, slots=True)
class WasteQuery:
    """What is asked.

    Args:
        by: The key of the rows.
        cluster: One cluster, or all of them.
        account: An account and all below it, or all.
        period: Such as ``2017-10``; the newest there is unless given.
        as_of: Recorded time: what the warehouse said then; now unless given.
    """

    by: WasteBy
    cluster: str | None = None
    account: str | None = None
    period: str | None = None
    as_of: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class WasteRow:
    """What became of the charged time of one key.

    Args:
        key: Account, person, day or ``total``.
        cluster: The cluster; None where several are summed.
        account: The account; None where several are summed.
        amounts: Column of the warehouse -> sum of gpu_ms.
        squatting_run_count: Runs that squatted; one that did so on two days counts twice.
        budget_gpu_ms: The account's budget with transfers, of all its people; None without one.
    """

    key: str
    cluster: str | None
    account: str | None
    amounts: Mapping[str, int]
    squatting_run_count: int
    budget_gpu_ms: int | None

    def as_json(self) -> dict[str, Any]:
        """Return the row under the published keys."""
        squatted, sampled = self.amounts["squatted_gpu_ms"], self.amounts["sampled_gpu_ms"]
        return {
            "key": self.key,
            "cluster": self.cluster,
            "account": self.account,
            **self.amounts,
            "squatting_run_count": self.squatting_run_count,
            "budget_gpu_ms": self.budget_gpu_ms,
            "coverage": _text(sampled, self.amounts["allocated_gpu_ms"]),
            "idle_of_sampled": _text(self.amounts["idle_gpu_ms"], sampled),
            "squatted_of_budget": _text(squatted, self.budget_gpu_ms),
        }


@dataclass(frozen=True, slots=True)
class WasteReport:
    """Waste of one period.

    Args:
        period: The period asked for, else the newest there is; None when nothing has been rolled up.
        periods: The periods there are, oldest first.
        rows: Those that squatted most first; days in their order.
    """

    period: str | None
    periods: list[str]
    rows: list[WasteRow]


def report(reader: Reader, query: WasteQuery, inner: Collection[str] = ()) -> WasteReport:
    """Return the waste of a period, the newest unless given.

    Args:
        reader: A snapshot.
        query: What is asked.
        inner: Accounts that have others below them: what they own themselves is a leaf of its own.

    Raises:
        NotFound: When there are periods, and the one asked for is none of them.
        Refused: When the warehouse has been rolled up after ``query.as_of``: it keeps no earlier state.
    """
    require_state_of(reader, query.cluster, query.as_of)
    known = periods(reader, query.cluster)
    if query.period is not None and known and query.period not in known:
        raise NotFound(
            f"no charged time of {query.cluster or 'any cluster'} in {query.period}",
            hint=f"periods there are: {known[0]} to {known[-1]}; {ROLL_UP} makes newer ones",
        )
    chosen = query.period or (known[-1] if known else None)
    rows = _rows(reader, query, chosen, inner) if chosen else []
    if query.by is not WasteBy.DAY:
        rows.sort(key=lambda row: (-row.amounts["squatted_gpu_ms"], -row.amounts["idle_gpu_ms"], row.key))
    return WasteReport(chosen, known, rows)


def periods(reader: Reader, cluster: str | None) -> list[str]:
    """Return the periods of which waste was rolled up, oldest first."""
    statement = sa.select(_PERIOD).select_from(waste_day).distinct().order_by(_PERIOD)
    if cluster is not None:
        statement = statement.where(waste_day.c.cluster == cluster)
    return list(reader.execute(statement).scalars())


def _rows(reader: Reader, query: WasteQuery, period: str, inner: Collection[str]) -> list[WasteRow]:
    column = waste_day.c
    keys = _keys(query.by)
    sums = [sa.cast(sa.func.sum(column[name]), sa.BigInteger).label(name) for name in AMOUNTS]
    first = dt.date.fromisoformat(f"{period}-01")
    after = (first + dt.timedelta(days=31)).replace(day=1)
    statement = (
        sa.select(
            *[key.label(name) for name, key in keys.items()],
            *sums,
            sa.cast(sa.func.sum(column.squatting_run_count), sa.BigInteger).label("runs"),
        )
        .where(column.day >= first, column.day < after, *_within(waste_day, query))
        .group_by(*keys.values())
        .order_by(*keys.values())
    )
    budgets = _budgets(reader, query, period)
    rows = []
    for found in reader.execute(statement).mappings():
        account: str | None = found.get("account")
        cluster: str | None = found.get("cluster")
        leaf = own_path(account) if account is not None and account in inner else account
        rows.append(
            WasteRow(
                key=str(leaf if query.by is WasteBy.ACCOUNT else found["key"]),
                cluster=cluster,
                account=leaf,
                amounts={name: found[name] for name in AMOUNTS},
                squatting_run_count=found["runs"],
                budget_gpu_ms=budgets.get((cluster, account)),
            )
        )
    return rows


def _keys(by: WasteBy) -> dict[str, sa.ColumnElement[Any]]:
    column = waste_day.c
    match by:
        case WasteBy.ACCOUNT:
            return {"cluster": column.cluster, "account": column.account}
        case WasteBy.USER:
            return {"key": column.user_token, "cluster": column.cluster, "account": column.account}
        case WasteBy.DAY:
            return {"key": _DAY}
        case WasteBy.TOTAL:
            return {"key": _TOTAL}
        case _ as never:
            assert_never(never)


def _budgets(
    reader: Reader, query: WasteQuery, period: str
) -> dict[tuple[str | None, str | None], int | None]:
    """Return (cluster, account) -> its budget with transfers; of all together under two times None.

    Nothing was granted to who has a budget of 0 and no transfers: there is nothing that a part could be of.
    """
    column = budget_vs_actual.c
    if query.by is WasteBy.DAY:
        return {}
    amount = sa.cast(sa.func.sum(column.budget_gpu_ms + column.transferred_gpu_ms), sa.BigInteger)
    keys = () if query.by is WasteBy.TOTAL else (column.cluster, column.account)
    statement = (
        sa.select(*keys, amount)
        .where(column.period == period, *_within(budget_vs_actual, query))
        .group_by(*keys)
    )
    found: dict[tuple[str | None, str | None], int | None] = {}
    for *names, value in reader.execute(statement):
        cluster, account = names or (None, None)
        found[cluster, account] = value or None
    return found


def _within(table: sa.Table, query: WasteQuery) -> list[sa.ColumnElement[bool]]:
    clauses: list[sa.ColumnElement[bool]] = []
    if query.cluster is not None:
        clauses.append(table.c.cluster == query.cluster)
    if query.account is not None:
        clauses.append(is_below(table.c.account, query.account))
    return clauses


def _text(part: int, whole: int | None) -> str | None:
    found = ratio(part, whole)
    return None if found is None else str(found)
