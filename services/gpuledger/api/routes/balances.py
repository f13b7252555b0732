"""Balances: all of them, or one account's.

Those of now are read once for all who ask in the same second, as long as no book moves meanwhile: a scheduler asks of
many accounts in its loop, and every reading adds what each open run has used since the last tick.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from fastapi import APIRouter
from pydantic import Field

from gpuledger.api import parameters
from gpuledger.api.access import Asking, needs
from gpuledger.api.answers import Answer, AsOf, Balance, Balances, OneBalance
from gpuledger.api.context import Context
from gpuledger.database.engine import Reader, reading
from gpuledger.identity.caller import Scope
from gpuledger.identity.roles import Right
from gpuledger.kernel.accounts import SEPARATOR, lineage, parent
from gpuledger.ledger import balances as balance_reads
from gpuledger.ledger import queries
from gpuledger.ledger.balances import BalanceQuery, Found
from gpuledger.ledger.recent import Recent, heads


class BalanceNode(Balance):
    """The balance of a node of a tree."""

    depth: int = Field(description="How far below the account that was asked for; 0 for that itself.")
    is_leaf: bool = Field(description="Whether it is a pot of its own, and no sum of others.")


class BalanceTree(Answer):
    """The balances of an account and of all below it, for one period; parents before their children."""

    account: str
    cluster: str
    period: str
    nodes: list[BalanceNode]
    as_of: str = AsOf


@dataclass(frozen=True, slots=True)
class _Seen:
    """The balances of an instant, and the answers that were made of them."""

    found: Found
    told: dict[tuple[str, str | None], dict[str, Any]] = field(default_factory=dict)

    def balance(self, account: str, query: BalanceQuery) -> dict[str, Any]:
        """Return an account's balance as it is answered."""
        key = account, query.period
        if key not in self.told:
            self.told[key] = self.found.balance(account, query).as_json()
        return self.told[key]


_Asked = Callable[[str, str | None, str | None, str | None], tuple[_Seen, BalanceQuery, str]]


def router(context: Context) -> APIRouter:
    """Return the paths, reading through the context's database."""
    routes = APIRouter(prefix="/v1", tags=["ledger"])

    def read(reader: Reader, cluster: str | None, now_s: int) -> _Seen:
        query = BalanceQuery(cluster)
        return _Seen(balance_reads.read(reader, query, now_s, context.default_calendar))

    recent = Recent(read)

    def asked(
        account: str, cluster: str | None, period: str | None, as_of: str | None
    ) -> tuple[_Seen, BalanceQuery, str]:
        """Return where an account's balance is found, what is asked there, and the instant of the answer."""
        # Without a cluster the account's root names it.
        query = BalanceQuery(cluster or next(lineage(account)), period)
        if as_of is None and (seen := recent.now(context.engine, query.cluster, context.now_s)) is not None:
            if (account, period) not in seen.told:
                queries.check_account(account, seen.found.accounts)
            return seen, query, context.as_of()
        with reading(context.engine) as reader:
            queries.require_cluster(reader, cluster)
            queries.require_account(reader, account)
            believed = context.believed(reader, as_of)
            query = replace(query, as_of=believed)
            found = balance_reads.read(reader, query, context.now_s(), context.default_calendar)
        return _Seen(found), query, context.as_of(believed)

    _add_list(routes, context, recent)
    _add_one(routes, asked)
    _add_tree(routes, asked)
    return routes


def _add_list(routes: APIRouter, context: Context, recent: Recent[str | None, _Seen]) -> None:
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
            books = heads(reader)
            books.check(cluster)
            if account is not None:
                queries.require_account(reader, account)
            if as_of is None:
                found = recent.within(reader, books, cluster, context.now_s()).found.leaves
                seen = context.as_of()
            else:
                believed = context.believed(reader, as_of)
                query, seen = BalanceQuery(cluster, period, as_of=believed), context.as_of(believed)
                found = balance_reads.balances(reader, query, context.now_s(), context.default_calendar)
        kept = [b for b in found if period in (None, b.period) and Scope(within).holds(b.account)]
        return {"balances": [b.as_json() for b in kept], "as_of": seen}


def _add_one(routes: APIRouter, asked: _Asked) -> None:
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
        found, query, seen = asked(account, cluster, period, as_of)
        return {**found.balance(account, query), "as_of": seen}


def _add_tree(routes: APIRouter, asked: _Asked) -> None:
    @routes.get(
        "/balance-trees/{account:path}",
        operation_id="getBalanceTree",
        summary="The balances of an account and of each node below it",
        response_model=BalanceTree,
        **needs(Right.READ_ACCOUNTS),
    )
    def get_balance_tree(
        account: parameters.AccountPath,
        caller: Asking,
        cluster: parameters.Cluster = None,
        period: parameters.Period = None,
        as_of: parameters.AsOf = None,
    ) -> dict[str, Any]:
        """Return one period of a tree, the newest unless given: each node sums the leaves below it.

        What is available to a node is cut at the limits above it, and `binding_account` names the one that binds.
        """
        cluster = caller.cluster(cluster)
        caller.require_account(account)
        found, query, seen = asked(account, cluster, period, as_of)
        nodes = found.found.tree(account, query)
        inner = {above for node in nodes if (above := parent(node.account)) is not None}
        return {
            "account": account,
            "cluster": nodes[0].cluster,
            "period": nodes[0].period,
            "nodes": [
                {
                    **node.as_json(),
                    "depth": node.account.count(SEPARATOR) - account.count(SEPARATOR),
                    "is_leaf": node.account not in inner,
                }
                for node in nodes
            ],
            "as_of": seen,
        }
