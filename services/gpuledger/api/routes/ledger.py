"""Paths that read the book: balances, usage, the newest allocations."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from gpuledger.api import parameters
from gpuledger.api.answers import Balances, Cycle, OneBalance, Usage
from gpuledger.api.context import Context, require_cluster
from gpuledger.database.engine import reading
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger import balances as balance_reads
from gpuledger.ledger import queries
from gpuledger.ledger.cycles import latest_cycle
from gpuledger.ledger.usage import By, UsageQuery, usage

AccountPath = Annotated[
    str,
    Path(
        description="An account path; slashes as they are.",
        max_length=1000,
        pattern=parameters.PRINTABLE,
        examples=["philly/ee9e8c"],
    ),
]
UsageBy = Annotated[By, Query(description="What the rows are keyed by.")]


def router(context: Context) -> APIRouter:
    """Return the paths, reading through the context's database."""
    routes = APIRouter(prefix="/v1", tags=["ledger"])

    @routes.get(
        "/balances",
        operation_id="listBalances",
        summary="Balances of all accounts",
        response_model=Balances,
    )
    def list_balances(
        cluster: parameters.Cluster = None,
        period: parameters.Period = None,
        account: parameters.Account = None,
    ) -> dict[str, Any]:
        """List leaf accounts by cluster and period; `account` keeps it and what is below it."""
        with reading(context.engine) as reader:
            require_cluster(reader, cluster)
            if account is not None:
                queries.require_account(reader, account)
            found = balance_reads.balances(reader, cluster, period, context.now_s(), context.default_calendar)
        kept = [b for b in found if account is None or f"{b.account}/".startswith(f"{account}/")]
        return {"balances": [b.as_json() for b in kept], "as_of": context.as_of()}

    @routes.get(
        "/balances/{account:path}",
        operation_id="getBalance",
        summary="One account's balance",
        response_model=OneBalance,
    )
    def get_balance(
        account: AccountPath, cluster: parameters.Cluster = None, period: parameters.Period = None
    ) -> dict[str, Any]:
        """Return one balance; an inner account sums the leaves below it, the newest period unless given."""
        with reading(context.engine) as reader:
            require_cluster(reader, cluster)
            found = balance_reads.balance(
                reader, account, cluster, period, context.now_s(), context.default_calendar
            )
        return {**found.as_json(), "as_of": context.as_of()}

    @routes.get(
        "/allocations/current",
        operation_id="getCurrentAllocations",
        summary="The newest policy cycle of a cluster",
        response_model=Cycle,
    )
    def get_current_allocations(cluster: parameters.RequiredCluster) -> dict[str, Any]:
        """Return what was issued, and each decision with its reason."""
        with reading(context.engine) as reader:
            require_cluster(reader, cluster)
            found = latest_cycle(reader, cluster)
        if found is None:
            raise NotFound(
                f"the policy has not run for cluster {cluster!r}", hint=f"gpuledger cycle --cluster {cluster}"
            )
        return {**found, "as_of": context.as_of()}

    @routes.get(
        "/usage",
        operation_id="getUsage",
        summary="GPU-time used",
        response_model=Usage,
    )
    def get_usage(
        by: UsageBy = By.ACCOUNT,
        cluster: parameters.Cluster = None,
        from_: parameters.From = None,
        to: parameters.To = None,
        as_of: parameters.AsOf = None,
    ) -> dict[str, Any]:
        """Return physical GPU-time of both classes, up to the earliest of `to`, `as_of` and now."""
        with reading(context.engine) as reader:
            require_cluster(reader, cluster)
            calendar = queries.calendar(reader, context.default_calendar)
            from_s, to_s = parameters.window_of(from_, to, calendar)
            believed = parameters.instant_of("as_of", as_of, calendar)
            query = UsageQuery(by=by, cluster=cluster, from_s=from_s, to_s=to_s, as_of=believed)
            return usage(reader, query, context.now_s(), context.default_calendar).as_json()

    return routes
