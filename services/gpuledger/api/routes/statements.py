"""What moved a budget, row by row."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from gpuledger.api import paging, parameters
from gpuledger.api.access import Asking, needs
from gpuledger.api.answers import Movements
from gpuledger.api.context import Context
from gpuledger.database.engine import reading
from gpuledger.identity.caller import Caller
from gpuledger.identity.roles import RIGHTS, Right
from gpuledger.kernel.accounts import lineage
from gpuledger.kernel.amounts import WEIGHT_ONE, gpu_hours
from gpuledger.ledger import queries
from gpuledger.ledger.movements import limits_moved, movements

Since = Annotated[
    str | None,
    Query(description="Recorded after this time; same forms as `as_of`.", max_length=40),
]


def router(context: Context) -> APIRouter:
    """Return the paths, reading through the context's database."""
    routes = APIRouter(prefix="/v1", tags=["ledger"])

    @routes.get(
        "/movements/{account:path}",
        operation_id="listMovements",
        summary="What moved an account's budget",
        response_model=Movements,
        **needs(Right.READ_ACCOUNTS),
    )
    def list_movements(  # noqa: PLR0913, PLR0917 - a parameter of the query each
        account: parameters.AccountPath,
        caller: Asking,
        cluster: parameters.Cluster = None,
        period: parameters.Period = None,
        since: Since = None,
        as_of: parameters.AsOf = None,
        limit: paging.Limit = paging.PAGE_MAX,
        after: paging.After = 0,
    ) -> dict[str, Any]:
        """List the movements between two recorded times: the difference of two balances, in the order of the book.

        An inner account tells of the leaves below it.

        `limits` are changes of the limits of the account and of all above it: they move no budget, but bound what may
        be spent of it. Those beyond what the caller reaches are left out. They and `total_gpu_ms` are those of all
        pages. Ask for the next page with the `as_of` of the first: rows are only added. Who may not read of work is
        told no name of it.
        """
        caller.require_account(account)
        cluster = caller.cluster(cluster) or next(lineage(account))
        caller.cluster(cluster)
        with reading(context.engine) as reader:
            believed = context.believed(reader, as_of)
            from_at = parameters.instant_of(
                "since", since, queries.calendar(reader, context.default_calendar)
            )
            found = movements(reader, account, cluster, period=period, since=from_at, until=believed)
            limits = limits_moved(reader, account, cluster, period=period, since=from_at, until=believed)
        total = sum(movement.amount for movement in found) // WEIGHT_ONE
        rows, following = paging.page(found, after, limit)
        return {
            "account": account,
            "cluster": cluster,
            "movements": [_cut(caller, movement.as_json()) for movement in rows],
            "limits": [moved.as_json() for moved in limits if caller.scope.holds(moved.account)],
            "total_gpu_ms": total,
            "total_gpu_hours": str(gpu_hours(total)),
            "next": following,
            "as_of": context.as_of(believed),
        }

    return routes


def _cut(caller: Caller, shown: dict[str, Any]) -> dict[str, Any]:
    """Leave out whose work it was for who may read of accounts, and not of work."""
    if Right.READ_WORK in RIGHTS[caller.role]:
        return shown
    return {**shown, "workload": None, "run": None}
