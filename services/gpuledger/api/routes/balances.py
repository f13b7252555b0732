"""Balances: all of them, or one account's."""

from typing import Any

from fastapi import APIRouter

from gpuledger.api import parameters
from gpuledger.api.access import Asking, needs
from gpuledger.api.answers import Balances, OneBalance
from gpuledger.api.context import Context
from gpuledger.database.engine import Reader, reading
from gpuledger.identity.caller import Scope
from gpuledger.identity.roles import Right
from gpuledger.ledger import balances as balance_reads
from gpuledger.ledger import queries
from gpuledger.ledger.balances import BalanceQuery


def router(context: Context) -> APIRouter:
    """Return the paths, reading through the context's database."""
    routes = APIRouter(prefix="/v1", tags=["ledger"])

    def asked(
        reader: Reader, cluster: str | None, period: str | None, as_of: str | None
    ) -> tuple[BalanceQuery, str]:
        """Return what is asked of the ledger, and the instant that the answer speaks of."""
        believed = context.believed(reader, as_of)
        return BalanceQuery(cluster, period, as_of=believed), context.as_of(believed)

    @routes.get(
        "/balances",
        operation_id="listBalances",
        summary="Balances of all accounts",
        response_model=Balances,
        **needs(Right.READ_ACCOUNTS),
    )
    def list_balances(
        caller: Asking,
        cluster: parameters.Cluster = None,
        period: parameters.Period = None,
        account: parameters.Account = None,
        as_of: parameters.AsOf = None,
    ) -> dict[str, Any]:
        """List leaf accounts by cluster and period; `account` keeps it and what is below it."""
        cluster, within = caller.cluster(cluster), caller.account(account)
        with reading(context.engine) as reader:
            queries.require_cluster(reader, cluster)
            if account is not None:
                queries.require_account(reader, account)
            query, seen = asked(reader, cluster, period, as_of)
            found = balance_reads.balances(reader, query, context.now_s(), context.default_calendar)
        kept = [b for b in found if Scope(within).holds(b.account)]
        return {"balances": [b.as_json() for b in kept], "as_of": seen}

    @routes.get(
        "/balances/{account:path}",
        operation_id="getBalance",
        summary="One account's balance",
        response_model=OneBalance,
        **needs(Right.READ_ACCOUNTS),
    )
    def get_balance(
        account: parameters.AccountPath,
        caller: Asking,
        cluster: parameters.Cluster = None,
        period: parameters.Period = None,
        as_of: parameters.AsOf = None,
    ) -> dict[str, Any]:
        """Return one balance; an inner account sums the leaves below it, the newest period unless given."""
        cluster = caller.cluster(cluster)
        caller.require_account(account)
        with reading(context.engine) as reader:
            queries.require_cluster(reader, cluster)
            query, seen = asked(reader, cluster, period, as_of)
            found = balance_reads.balance(reader, account, query, context.now_s(), context.default_calendar)
        return {**found.as_json(), "as_of": seen}

    return routes
