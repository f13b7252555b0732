"""Balances as rows of ``gbalance``: GPU-hours for people, each beside what it is a part of. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any

from gpuledger.client.answers import Balance
from gpuledger.kernel.amounts import people_gpu_hours
from gpuledger.login.columns import Column

USUAL = "Account,Period,Given,Charged,Held,Available,Binding"
"""What is shown unless more is asked for."""

OF_SEVERAL = "Account,Cluster,Period,Given,Charged,Held,Available,Binding"
"""What is shown where there are balances of several clusters."""

LONG = (
    "Account,Cluster,Period,Granted,RolledOver,Transferred,Expired,Given,Charged,Credited,Held,Available,Own,Binding,"
    "Unallocated"
)
"""What ``--long`` shows."""

MEANINGS = {
    "Account": "the account",
    "Cluster": "the cluster whose GPU-time it is",
    "Period": "the budget period",
    "Granted": "GPU-hours granted, with what was rolled over",
    "RolledOver": "the part of it that came from the period before; below zero an overrun",
    "Transferred": "moved to it from other accounts, less what it gave away",
    "Expired": "what lapsed unused",
    "Given": "granted, transferred, less expired: what there is for the period",
    "Charged": "used and charged, before credits",
    "Credited": "given back for failures",
    "Held": "set aside for runs that started, and for admitted work that has not",
    "Available": "what may still be spent, the limits of accounts above it counted",
    "Own": "what it would have without those limits",
    "Binding": "the account whose limit is the first to end it; itself where that is its own budget",
    "Unallocated": "GPU-hours that ran outside of the budget, free of charge",
}


def given(balance: Balance) -> int:
    """Return what there is for the period, used or not, in gpu_ms."""
    return balance.granted_gpu_ms + balance.transferred_gpu_ms - balance.expired_gpu_ms


def newest(balances: Iterable[Balance], period: str | None) -> tuple[Balance, ...]:
    """Return the balances of one period: the one named, else the newest of each cluster that an account has."""
    found = list(balances)
    last: dict[tuple[str, str], str] = {}
    for each in found:
        key = (each.cluster, each.account)
        last[key] = max(last.get(key, ""), each.period)
    return tuple(each for each in found if each.period == (period or last[each.cluster, each.account]))


def as_json(balances: Sequence[Balance]) -> list[dict[str, Any]]:
    """Return balances as the document has them: whole gpu_ms."""
    names = (
        "account", "cluster", "period", "granted_gpu_ms", "rolled_over_gpu_ms", "transferred_gpu_ms",
        "expired_gpu_ms", "charged_gpu_ms", "credited_gpu_ms", "held_gpu_ms", "available_gpu_ms",
        "own_available_gpu_ms", "binding_account", "unallocated_gpu_ms",
    )  # fmt: skip
    return [{name: getattr(each, name) for name in names} for each in balances]


def columns() -> dict[str, Column[Balance]]:
    """Return every column by its name; amounts in GPU-hours with one decimal."""
    found: list[Column[Balance]] = [
        Column("Account", 20, lambda row: row.account, is_left=True),
        Column("Cluster", 8, lambda row: row.cluster, is_left=True),
        Column("Period", 8, lambda row: row.period, is_left=True),
        Column("Granted", 10, lambda row: people_gpu_hours(row.granted_gpu_ms)),
        Column("RolledOver", 10, lambda row: people_gpu_hours(row.rolled_over_gpu_ms)),
        Column("Transferred", 11, lambda row: people_gpu_hours(row.transferred_gpu_ms)),
        Column("Expired", 10, lambda row: people_gpu_hours(row.expired_gpu_ms)),
        Column("Given", 10, lambda row: people_gpu_hours(given(row))),
        Column("Charged", 10, lambda row: people_gpu_hours(row.charged_gpu_ms)),
        Column("Credited", 10, lambda row: people_gpu_hours(row.credited_gpu_ms)),
        Column("Held", 8, lambda row: people_gpu_hours(row.held_gpu_ms)),
        Column("Available", 10, lambda row: people_gpu_hours(row.available_gpu_ms)),
        Column("Own", 10, lambda row: people_gpu_hours(row.own_available_gpu_ms)),
        Column("Binding", 20, lambda row: row.binding_account, is_left=True),
        Column("Unallocated", 11, lambda row: people_gpu_hours(row.unallocated_gpu_ms)),
    ]
    return {column.name: column for column in found}
