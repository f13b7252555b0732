"""What the ledger can be asked, each question described once: for whoever waits, and for whoever awaits, the answer."""

from urllib.parse import quote

from gpuledger.client import answers, outcomes, records, stories, waiting
from gpuledger.client.asking import Ask, Moment, get


def clusters(*, as_of: Moment | None = None) -> Ask[answers.Clusters]:
    """List clusters and the window that each can be asked for."""
    return get(answers.Clusters, "/v1/clusters", as_of=as_of)


def books(*, as_of: Moment | None = None) -> Ask[answers.Books]:
    """List books with their chain heads, and count the dead letters."""
    return get(answers.Books, "/v1/books", as_of=as_of)


def balances(
    *,
    cluster: str | None = None,
    period: str | None = None,
    account: str | None = None,
    as_of: Moment | None = None,
) -> Ask[answers.Balances]:
    """List balances; ``account`` keeps it and what is below it."""
    return get(
        answers.Balances,
        "/v1/balances",
        cluster=cluster,
        period=period,
        account=account,
        as_of=as_of,
    )


def balance(
    account: str,
    *,
    cluster: str | None = None,
    period: str | None = None,
    as_of: Moment | None = None,
) -> Ask[answers.OneBalance]:
    """Return one account's balance, of the newest period unless given.

    Raises:
        NotFound: When the account does not exist, or has no balance there and then.
    """
    path = f"/v1/balances/{quote(account)}"
    return get(answers.OneBalance, path, cluster=cluster, period=period, as_of=as_of)


def allocations(
    cluster: str,
    *,
    after: int | None = None,
    wait_s: int | None = None,
    as_of: Moment | None = None,
) -> Ask[answers.Cycle]:
    """Return the newest cycle of a cluster; after a cursor, only one that is newer.

    With ``wait_s``, up to 5, an answer that would hold nothing waits so long for something newer.

    Raises:
        NotFound: When the cluster does not exist, or the policy has not run.
    """
    path = "/v1/allocations/current"
    return get(answers.Cycle, path, cluster=cluster, after=after, wait_s=wait_s, as_of=as_of)


def directives(
    cluster: str,
    *,
    after: int | None = None,
    stale_after_s: int | None = None,
    wait_s: int | None = None,
    as_of: Moment | None = None,
) -> Ask[answers.Directives]:
    """Return what the newest cycle of a cluster orders; after a cursor, only what is newer.

    With ``wait_s``, up to 5, an answer that would hold nothing waits so long for something newer.

    Raises:
        NotFound: When the cluster does not exist.
    """
    return get(
        answers.Directives,
        "/v1/directives/current",
        cluster=cluster,
        after=after,
        stale_after_s=stale_after_s,
        wait_s=wait_s,
        as_of=as_of,
    )


def usage(
    by: str = "account",
    *,
    cluster: str | None = None,
    account: str | None = None,
    from_: Moment | None = None,
    to: Moment | None = None,
    as_of: Moment | None = None,
) -> Ask[answers.Usage]:
    """Return GPU-time used, of an account and what is below it where one is named.

    Keyed by account, month, day, user, class, cluster, host, model or ``label:NAME``, the values of a label.
    """
    return get(
        answers.Usage,
        "/v1/usage",
        by=by,
        cluster=cluster,
        account=account,
        **{"from": from_},
        to=to,
        as_of=as_of,
    )


def layers(
    by: str = "cluster",
    *,
    cluster: str | None = None,
    from_: Moment | None = None,
    to: Moment | None = None,
    as_of: Moment | None = None,
) -> Ask[answers.Layers]:
    """Return the four layers, keyed by day, month, hour, cluster or total; ``to`` is exclusive."""
    return get(
        answers.Layers,
        "/v1/layers",
        by=by,
        cluster=cluster,
        **{"from": from_},
        to=to,
        as_of=as_of,
    )


def budget_vs_actual(
    *, cluster: str | None = None, period: str | None = None, as_of: Moment | None = None
) -> Ask[answers.BudgetVersusActual]:
    """Return budget against actual, of the newest period unless given."""
    return get(
        answers.BudgetVersusActual,
        "/v1/budget-vs-actual",
        cluster=cluster,
        period=period,
        as_of=as_of,
    )


def workload(
    workload: str,
    *,
    cluster: str | None = None,
    what_if: bool = False,
    as_of: Moment | None = None,
) -> Ask[stories.Workload]:
    """Return a workload's story, and why it waits; ``what_if`` looks for what would let it start.

    Raises:
        NotFound: When the caller knows no such workload.
    """
    path = f"/v1/workloads/{quote(workload)}"
    wanted = "true" if what_if else None
    return get(stories.Workload, path, cluster=cluster, what_if=wanted, as_of=as_of)


def movements(
    account: str,
    *,
    cluster: str | None = None,
    period: str | None = None,
    since: Moment | None = None,
    after: int | None = None,
    as_of: Moment | None = None,
) -> Ask[answers.Movements]:
    """Return a page of what moved an account's budget; the next one takes ``next`` and the ``as_of`` of the first.

    Raises:
        NotFound: When the account or the cluster does not exist.
    """
    path = f"/v1/movements/{quote(account)}"
    return get(answers.Movements, path, cluster=cluster, period=period, since=since, after=after, as_of=as_of)


def periods(*, cluster: str | None = None, as_of: Moment | None = None) -> Ask[answers.Periods]:
    """List the budget periods that were opened or have movements."""
    return get(answers.Periods, "/v1/periods", cluster=cluster, as_of=as_of)


def me() -> Ask[outcomes.WhoAmI]:
    """Return who the API takes this client for."""
    return get(outcomes.WhoAmI, "/v1/me")


def tokens() -> Ask[outcomes.Tokens]:
    """List who may ask the API: every token there is or was, without its secret."""
    return get(outcomes.Tokens, "/v1/tokens")


def hosts(
    *, cluster: str | None = None, after: int | None = None, as_of: Moment | None = None
) -> Ask[records.Hosts]:
    """List the hosts that are installed, and how well they are."""
    return get(records.Hosts, "/v1/hosts", cluster=cluster, after=after, as_of=as_of)


def drains(
    *, cluster: str | None = None, after: int | None = None, as_of: Moment | None = None
) -> Ask[records.Drains]:
    """List the hosts that are being emptied, and who is still there."""
    return get(records.Drains, "/v1/drains", cluster=cluster, after=after, as_of=as_of)


def incidents(
    *,
    cluster: str | None = None,
    from_: Moment | None = None,
    to: Moment | None = None,
    after: int | None = None,
    as_of: Moment | None = None,
) -> Ask[records.Incidents]:
    """List failures of hardware that were noticed in a window, with the runs that they ended; ``to`` is exclusive."""
    return get(
        records.Incidents,
        "/v1/incidents",
        cluster=cluster,
        **{"from": from_},
        to=to,
        after=after,
        as_of=as_of,
    )


def accounts(
    *, account: str | None = None, after: int | None = None, as_of: Moment | None = None
) -> Ask[records.Accounts]:
    """List accounts with the shares and overdrafts that were set; ``account`` keeps it and what is below it."""
    return get(records.Accounts, "/v1/accounts", account=account, after=after, as_of=as_of)


def closes(
    *,
    cluster: str | None = None,
    period: str | None = None,
    after: int | None = None,
    as_of: Moment | None = None,
) -> Ask[records.Closes]:
    """List the closes of periods with their versions and digests."""
    return get(records.Closes, "/v1/closes", cluster=cluster, period=period, after=after, as_of=as_of)


def close_of(
    cluster: str, period: str, *, version: int | None = None, as_of: Moment | None = None
) -> Ask[records.OneClose]:
    """Return one close and the document that was sealed, the newest version unless given.

    Raises:
        NotFound: When the period was never closed, or has no such version.
    """
    path = f"/v1/closes/{quote(cluster, safe='')}/{period}"
    return get(records.OneClose, path, version=version, as_of=as_of)


def waits(
    by: str = "size",
    *,
    cluster: str | None = None,
    account: str | None = None,
    class_: str | None = None,
    from_: Moment | None = None,
    to: Moment | None = None,
    as_of: Moment | None = None,
) -> Ask[waiting.Waits]:
    """Return how long requests waited, keyed by size, class, account, day, turn or total; ``to`` is exclusive."""
    return get(
        waiting.Waits,
        "/v1/waits",
        by=by,
        cluster=cluster,
        account=account,
        **{"class": class_, "from": from_},
        to=to,
        as_of=as_of,
    )


def waste(
    by: str = "account",
    *,
    cluster: str | None = None,
    account: str | None = None,
    period: str | None = None,
    as_of: Moment | None = None,
) -> Ask[waiting.Waste]:
    """Return what of the charged time of a period was not used, keyed by account, user, day or total.

    Raises:
        NotFound: When there are periods, and the one asked for is none of them.
    """
    return get(
        waiting.Waste, "/v1/waste", by=by, cluster=cluster, account=account, period=period, as_of=as_of
    )
