"""Opening a budget period: leaves without an explicit grant get their share of installed capacity.

A fact's period opens by itself, once, as a journalled command with its amounts in it, so that a
later change of shares or inventory never moves an amount that was granted.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence

from gpuledger.database.engine import Writer
from gpuledger.events.budget import PeriodGrant, PeriodOpened
from gpuledger.events.envelope import ORG_BOOK, make
from gpuledger.kernel.accounts import BOOK_POT_ACCOUNT, lineage, parent
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.apportion import apportion
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, instant, seconds
from gpuledger.ledger import queries
from gpuledger.ledger.append import append
from gpuledger.ledger.copying import driver
from gpuledger.ledger.store import lock_book

SOURCE = "gpuledger/periods"
ABSENT_SHARE = 1
"""The share of an account that nobody set one for."""


def open_periods(writer: Writer, cluster: str, *, clock: Clock, calendar: Calendar) -> list[str]:
    """Open every period of a cluster that has movements and was not opened yet; return their keys.

    Nothing happens while the cluster has no installed capacity in a period: default grants need it.
    """
    if not _unopened(writer, cluster):
        return []
    # Ask again under the book's lock: another worker may be opening the same periods.
    lock_book(writer, cluster)
    due = _unopened(writer, cluster)
    paths = members(cluster, queries.account_paths(writer), queries.clusters(writer))
    opened = []
    for period in due:
        start_s, end_s = calendar.period_bounds_s(period)
        installed = installed_gpu_ms(writer, cluster, start_s, end_s)
        if installed == 0:
            continue
        shares = queries.shares_at(writer, instant(start_s))
        granted = _explicitly_granted(writer, cluster, period)
        grants = [
            PeriodGrant(account=account, gpu_ms=gpu_ms)
            for account, gpu_ms in divide(installed, paths, shares).items()
            if account not in granted and gpu_ms > 0
        ]
        fact = PeriodOpened(
            cluster=cluster,
            period=period,
            installed_gpu_ms=installed,
            grants=grants,
            org_seq=queries.sequences(writer).get(ORG_BOOK, 0),
        )
        event, _ = make(id=f"period/{cluster}/{period}", source=SOURCE, at_s=start_s, data=fact)
        append(writer, cluster, [event], clock=clock, calendar=calendar)
        opened.append(period)
    return opened


def members(cluster: str, paths: Iterable[str], clusters: Sequence[str]) -> list[str]:
    """Return the accounts that share a cluster.

    A root named like the cluster owns it alone (imported traces); otherwise every root that is not
    named like another cluster shares it.
    """
    paths = list(paths)
    roots = {next(lineage(path)) for path in paths}
    owners = {cluster} if cluster in roots else roots - set(clusters)
    return [path for path in paths if next(lineage(path)) in owners]


def divide(total: int, paths: Sequence[str], shares: Mapping[str, int]) -> dict[str, int]:
    """Divide an amount down the tree by shares; the leaves' parts sum to the total exactly.

    Sibling sets whose shares are all 0 get nothing. Absent nodes and accounts without a share count 1.
    """
    nodes = sorted({node for path in paths for node in lineage(path)})
    children: dict[str | None, list[str]] = {}
    for node in nodes:
        children.setdefault(parent(node), []).append(node)
    parts: dict[str, int] = {}

    def descend(node: str | None, amount: int) -> None:
        below = children.get(node, [])
        if not below and node is not None:
            parts[node] = amount
        weights = [shares.get(child, ABSENT_SHARE) for child in below]
        for child, part in zip(below, apportion(amount, weights), strict=True):
            descend(child, part)

    descend(None, total)
    return parts


def installed_gpu_ms(writer: Writer, cluster: str, start_s: int, end_s: int) -> int:
    """Return installed capacity integrated over ``[start_s, end_s)``."""
    rows = driver(writer).execute(
        "SELECT gpus, from_at, to_at FROM ledger.hosts WHERE book = %s AND until_seq IS NULL"
        " AND from_at < %s AND (to_at IS NULL OR to_at > %s)",
        (cluster, instant(end_s), instant(start_s)),
    )
    return sum(
        gpus * GPU_MILLI * (_clip(to_at, end_s) - max(seconds(from_at), start_s))
        for gpus, from_at, to_at in rows
    )


def _clip(to_at: dt.datetime | None, end_s: int) -> int:
    return end_s if to_at is None else min(seconds(to_at), end_s)


def _unopened(writer: Writer, cluster: str) -> list[str]:
    rows = driver(writer).execute(
        "SELECT DISTINCT period FROM ledger.balances WHERE book = %s AND account <> %s"
        " AND period NOT IN (SELECT period FROM ledger.periods WHERE book = %s) ORDER BY period",
        (cluster, BOOK_POT_ACCOUNT, cluster),
    )
    return [period for (period,) in rows]


def _explicitly_granted(writer: Writer, cluster: str, period: str) -> set[str]:
    rows = driver(writer).execute(
        "SELECT DISTINCT account FROM ledger.balances WHERE book = %s AND period = %s AND code = 'grant'"
        " AND pot = 'budget'",
        (cluster, period),
    )
    return {account for (account,) in rows}
