"""What a proposal would change, as the books stand: parts of clusters, and what is left to spend."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.proposal import BudgetEffect, Effect, Proposed, ShareEffect
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant
from gpuledger.kernel.errors import NotFound
from gpuledger.kernel.portions import members, portions
from gpuledger.ledger import queries
from gpuledger.ledger.balances import BalanceQuery, balance
from gpuledger.ledger.periods import installed_gpu_ms

_PPM = 1_000_000


def effect_of(connection: Reader | Writer, asked: Proposed, *, now_s: int, calendar: Calendar) -> Effect:
    """Return what a proposal would change.

    Args:
        connection: A snapshot.
        asked: The proposal; its accounts exist.
        now_s: The present, in seconds since the epoch.
        calendar: The organisation's days.
    """
    at_s = effective_s(asked, now_s)
    period = calendar.period_of(calendar.day_of(at_s)) if asked.shares else None
    return Effect(
        period=period,
        shares=_shares(connection, asked, at_s, calendar.period_bounds_s(period)) if period else [],
        budgets=_budgets(connection, asked, now_s, calendar),
    )


def effective_s(asked: Proposed, now_s: int) -> int:
    """Return when new shares take effect that are approved at an instant: never before it."""
    return now_s if asked.effective_at is None else max(now_s, int(asked.effective_at.timestamp()))


def changed_parts(
    paths: Sequence[str], before: Mapping[str, int], after: Mapping[str, int]
) -> Iterator[tuple[str, Fraction, Fraction]]:
    """Yield (leaf, part before, part after) of the leaves whose part of a cluster changes, by path. Pure.

    Args:
        paths: The accounts that share the cluster.
        before: Account -> its share.
        after: The same under the new shares.
    """
    old, new = portions(paths, before), portions(paths, after)
    for leaf in sorted(old.keys() | new.keys()):
        if old.get(leaf) != new.get(leaf):
            yield leaf, old.get(leaf, Fraction(0)), new.get(leaf, Fraction(0))


def _shares(
    connection: Reader | Writer, asked: Proposed, at_s: int, bounds_s: tuple[int, int]
) -> list[ShareEffect]:
    before = queries.shares_at(connection, instant(at_s))
    after = before | {change.account: change.share for change in asked.shares}
    paths, clusters = queries.account_paths(connection), queries.clusters(connection)
    found = []
    for cluster in clusters:
        installed = installed_gpu_ms(connection, cluster, *bounds_s)
        for leaf, old, new in changed_parts(members(cluster, paths, clusters), before, after):
            found.append(
                ShareEffect(
                    cluster=cluster,
                    account=leaf,
                    before_ppm=int(old * _PPM),
                    after_ppm=int(new * _PPM),
                    before_gpu_ms=int(old * installed),
                    after_gpu_ms=int(new * installed),
                )
            )
    return found


def _budgets(
    connection: Reader | Writer, asked: Proposed, now_s: int, calendar: Calendar
) -> list[BudgetEffect]:
    added: dict[tuple[str, str], int] = defaultdict(int)
    for grant in asked.grants:
        added[grant.account, grant.period] += grant.gpu_ms
    for transfer in asked.transfers:
        added[transfer.account, transfer.period] -= transfer.gpu_ms
        added[transfer.to, transfer.period] += transfer.gpu_ms
    return [
        BudgetEffect(
            account=account,
            period=period,
            added_gpu_ms=gpu_ms,
            available_gpu_ms=_available(connection, account, asked.cluster, period, now_s, calendar),
        )
        for (account, period), gpu_ms in sorted(added.items())
    ]


def _available(
    connection: Reader | Writer,
    account: str,
    cluster: str | None,
    period: str,
    now_s: int,
    calendar: Calendar,
) -> int | None:
    try:
        found = balance(connection, account, BalanceQuery(cluster, period), now_s, calendar)
    except NotFound:
        return None
    return found.available_gpu_ms
