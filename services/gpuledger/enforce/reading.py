"""What enforcers read from the ledger, at the moment of acting."""

from collections.abc import Iterable

from gpuledger.database.engine import Reader
from gpuledger.enforce.facts import Facts
from gpuledger.kernel.amounts import WEIGHT_ONE
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger import cycles, queries, state
from gpuledger.ledger.balances import BalanceQuery, balance
from gpuledger.ledger.host_orders import host_orders
from gpuledger.ledger.knobs import read_config
from gpuledger.ledger.rates import UNWEIGHTED
from gpuledger.policy import kept
from gpuledger.policy.reading import read_running


class NoCycle(NotFound):
    """Nobody has run the policy for the cluster yet: whoever goes on asking is told once somebody has."""


def read_facts(
    reader: Reader, cluster: str, now_s: int, *, scheduler: str, calendar: Calendar, stale_after_s: int
) -> Facts:
    """Return the newest cycle of a cluster up to now, with the orders in force, and the ledger now.

    Args:
        reader: The ledger, in one snapshot.
        cluster: The cluster.
        now_s: The present.
        scheduler: What begins the sources of the scheduler's own facts: its word about hosts is no order to it.
        calendar: The organisation's days before it has set its own.
        stale_after_s: How old a cycle may be that stops and orders.

    Raises:
        NotFound: When the cluster is not known.
        NoCycle: When it had no cycle yet.
    """
    queries.require_cluster(reader, cluster)
    word = cycles.newest_word(reader, cluster, at_s=now_s)
    if word is None:
        raise NoCycle(
            f"cluster {cluster!r} had no cycle yet: there is nothing to enforce",
            hint=f"gpuledger cycle --cluster {cluster}",
        )
    running = read_running(reader, cluster, now_s, read_config(reader, cluster, now_s))
    # Hosts that are down come back: no budget moves for it.
    models = state.installed_models(reader, cluster, now_s)
    decisions = kept.decisions_of(reader, cluster, word.issued)  # those to wait are kept for a while only
    return Facts(
        record=word.record if decisions is None else {**word.record, "decisions": word.in_force(decisions)},
        cycle_at_s=word.newest.at_s,
        now_s=now_s,
        running={run.id: run for run in running},
        draining=host_orders(reader, cluster, scheduler, now_s),
        left_gpu_ms=_left(reader, cluster, now_s, models, calendar),
        stale_after_s=stale_after_s,
    )


def _left(
    reader: Reader, cluster: str, now_s: int, models: Iterable[str], calendar: Calendar
) -> dict[str, int]:
    """Return what each hard account has left, in physical GPU-time of the dearest GPUs of the cluster.

    Schedulers count GPUs, budgets count weighted ones: on the dearest model nobody gets more than the budget holds.
    """
    card = queries.rate_cards(reader).get(cluster, UNWEIGHTED)
    dearest = max((card.weight(model, now_s) for model in models), default=WEIGHT_ONE)
    found = {}
    for account in sorted(queries.hard_accounts(reader, instant(now_s))):
        try:
            own = balance(reader, account, BalanceQuery(cluster=cluster), now_s, calendar)
        except NotFound:
            continue  # nothing was ever granted to it here, nor charged
        found[account] = own.available_gpu_ms * WEIGHT_ONE // max(dearest, 1)
    return found
