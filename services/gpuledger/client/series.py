"""Questions about trees, queues and series, and what they are answered with; null is unknown."""

from urllib.parse import quote

import msgspec

from gpuledger.client.answers import Answer, Balance
from gpuledger.client.asking import Ask, Moment, get


class BalanceNode(Balance, frozen=True, kw_only=True):
    """The balance of a node of a tree, and how far below the top it lies."""

    depth: int
    is_leaf: bool


class BalanceTree(Answer, frozen=True, kw_only=True):
    """The balances of an account and of all below it, for one period; parents before their children."""

    account: str
    cluster: str
    period: str
    nodes: tuple[BalanceNode, ...]
    as_of: str


class Ratio(Answer, frozen=True, kw_only=True):
    """How far an account has used what it was entitled to."""

    account: str
    ratio: str | None


class QueuedRow(Answer, frozen=True, kw_only=True):
    """A workload that waits, its place, and the ratios that it was ordered by."""

    position: int | None
    workload: str
    account: str
    gpus_milli: int
    gpu_model: str | None
    minimum_runtime_s: int
    priority: int
    submitted_at: str
    waits_since: str
    action: str | None
    reason: str | None
    ratios: tuple[Ratio, ...]


class Queue(Answer, frozen=True, kw_only=True):
    """A page of who waits; ``next`` is the ``after`` of the next one, of the same ``cycle``."""

    cluster: str
    cycle: str | None
    decided_at: str | None
    rows: tuple[QueuedRow, ...]
    reason: str | None
    next: int | None
    as_of: str


class OwedRow(Answer, frozen=True, kw_only=True):
    """What an account was owed and delivered under one key."""

    key: str
    account: str
    entitlement_gpu_ms: int | None
    demand_gpu_ms: int
    owed_gpu_ms: int | None
    delivered_gpu_ms: int
    met_gpu_ms: int | None
    hours: int
    hours_with_inventory: int


class Owed(Answer, frozen=True, kw_only=True):
    """A page of owed and delivered over time, by key and account; ``next`` is the ``after`` of the next one."""

    rows: tuple[OwedRow, ...]
    by: str
    cluster: str
    account: str | None
    from_: str | None = msgspec.field(name="from")
    to: str | None
    timezone: str
    reading: str
    next: int | None
    as_of: str


def balance_tree(
    account: str, *, cluster: str | None = None, period: str | None = None, as_of: Moment | None = None
) -> Ask[BalanceTree]:
    """Return the balances of an account and of each node below it, for one period: the newest unless given.

    Raises:
        NotFound: When the account does not exist, or has no balance there and then.
    """
    path = f"/v1/balance-trees/{quote(account)}"
    return get(BalanceTree, path, cluster=cluster, period=period, as_of=as_of)


def queue(
    cluster: str, *, account: str | None = None, after: int | None = None, as_of: Moment | None = None
) -> Ask[Queue]:
    """List who waits on a cluster in the order of the newest cycle; ``account`` keeps it and what is below it.

    Raises:
        NotFound: When the cluster or the account does not exist.
    """
    return get(Queue, "/v1/queue", cluster=cluster, account=account, after=after, as_of=as_of)


def owed(
    cluster: str,
    *,
    by: str = "day",
    account: str | None = None,
    from_: Moment | None = None,
    to: Moment | None = None,
    after: int | None = None,
    as_of: Moment | None = None,
) -> Ask[Owed]:
    """Return what accounts were owed and delivered, keyed by hour, day, month or total; ``to`` is exclusive.

    Raises:
        NotFound: When the cluster or the account does not exist.
    """
    return get(
        Owed,
        "/v1/owed",
        cluster=cluster,
        by=by,
        account=account,
        **{"from": from_},
        to=to,
        after=after,
        as_of=as_of,
    )
