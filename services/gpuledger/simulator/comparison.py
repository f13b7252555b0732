"""Two budgets on one workload: who waits longer, who gets less, and by how much. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gpuledger.simulator.document import Simulation, Wait
from gpuledger.simulator.portions import parts_of
from gpuledger.simulator.scenario import AccountSpec

_NOTHING = Wait(p50=None, p90=None, p99=None, count=0, unended=0, from_before=0, longest=None)


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A figure under one budget, under the other, and how much it grows.

    Args:
        a: Under the first.
        b: Under the second.
        change: b - a; null when one of them is not known.
    """

    a: float | None
    b: float | None
    change: float | None


class AccountPair(msgspec.Struct, frozen=True, kw_only=True):
    """An account under both budgets.

    Args:
        account: Its path.
        part: Its part of the cluster.
        gpu_hours: What it got, of both classes.
        window: Delivered / owed.
        wait_p50_s: The median wait of its jobs.
        wait_p90_s: Nine in ten of its jobs waited no longer.
    """

    account: str
    part: Pair
    gpu_hours: Pair
    window: Pair
    wait_p50_s: Pair
    wait_p90_s: Pair


class GroupPair(msgspec.Struct, frozen=True, kw_only=True):
    """A group of jobs under both budgets.

    Args:
        group: Its name.
        wait_p50_s: The median wait.
        wait_p90_s: Nine in ten waited no longer.
    """

    group: str
    wait_p50_s: Pair
    wait_p90_s: Pair


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two budgets compared.

    Args:
        accounts: Every account of either, who loses most GPU-hours first.
        groups: Every group.
        gets_less: Accounts that get fewer GPU-hours, who loses most first.
        waits_longer: Accounts whose p90 wait is longer, who waits longest more first; one that is not reached any
            more is longer than any that is.
        window: Delivered / owed of the cluster.
    """

    accounts: list[AccountPair]
    groups: list[GroupPair]
    gets_less: list[str]
    waits_longer: list[str]
    window: Pair


def compare(
    a: Simulation, b: Simulation, accounts_a: Sequence[AccountSpec], accounts_b: Sequence[AccountSpec]
) -> Comparison:
    """Compare what came of one workload under two budgets.

    Args:
        a: The report under the first.
        b: The report under the second.
        accounts_a: The first budget.
        accounts_b: The second.
    """
    parts_a, parts_b = parts_of(accounts_a), parts_of(accounts_b)
    rows = [
        AccountPair(
            account=path,
            part=_pair(round(float(parts_a.get(path, 0)), 6), round(float(parts_b.get(path, 0)), 6)),
            gpu_hours=_pair(a.gpu_hours.get(path, 0.0), b.gpu_hours.get(path, 0.0)),
            window=_pair(_window(a, path), _window(b, path)),
            **_waits(_wait(a, path), _wait(b, path)),
        )
        for path in sorted({*a.accounts, *b.accounts})
    ]
    rows.sort(key=lambda row: (row.gpu_hours.change or 0, row.account))
    longer = [row for row in rows if _longer(row.wait_p90_s) > 0]
    longer.sort(key=lambda row: (-_longer(row.wait_p90_s), row.account))
    return Comparison(
        accounts=rows,
        groups=[GroupPair(group=name, **_waits(a.wait_s[name], b.wait_s[name])) for name in a.wait_s],
        gets_less=[row.account for row in rows if (row.gpu_hours.change or 0) < 0],
        waits_longer=[row.account for row in longer],
        window=_pair(a.delivered_over_owed.window, b.delivered_over_owed.window),
    )


def with_shares(accounts: Sequence[AccountSpec], shares: Mapping[str, int]) -> tuple[AccountSpec, ...]:
    """Return a program tree with the shares of a budget; accounts that it leaves out keep theirs."""
    kept = {spec.account: spec for spec in accounts}
    for path, share in shares.items():
        limit = kept[path].team_limit_milli if path in kept else None
        kept[path] = AccountSpec(account=path, share=share, team_limit_milli=limit)
    return tuple(kept.values())


def _pair(a: float | None, b: float | None) -> Pair:
    return Pair(a=a, b=b, change=None if a is None or b is None else round(b - a, 6))


def _waits(a: Wait, b: Wait) -> dict[str, Any]:
    return {"wait_p50_s": _pair(a.p50, b.p50), "wait_p90_s": _pair(a.p90, b.p90)}


def _longer(wait: Pair) -> float:
    """Return by how much a wait is longer; what was not reached is longer than all that was."""
    return (float("inf") if wait.b is None else wait.b) - wait.a if wait.a is not None else 0


def _window(report: Simulation, path: str) -> float | None:
    row = report.accounts.get(path)
    return None if row is None else row.window


def _wait(report: Simulation, path: str) -> Wait:
    row = report.accounts.get(path)
    return _NOTHING if row is None else row.wait_s


__all__ = ["AccountPair", "Comparison", "GroupPair", "Pair", "compare", "with_shares"]
