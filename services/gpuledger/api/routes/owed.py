"""What accounts were owed and delivered, as a series."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from gpuledger.api import paging, parameters
from gpuledger.api.access import Asking, needs
from gpuledger.api.answers import Answer, AsOf, GpuHours
from gpuledger.api.context import Context, hours_of
from gpuledger.api.routes.layers import READING
from gpuledger.database.engine import reading
from gpuledger.identity.roles import Right
from gpuledger.kernel.clock import instant, iso
from gpuledger.ledger import queries
from gpuledger.warehouse import reads
from gpuledger.warehouse.owed import OwedBy, OwedQuery, owed

OwedKey = Annotated[OwedBy, Query(description="What the rows of an account are keyed by.")]


class OwedAnswer(Answer):
    """What an account was owed and delivered in one hour, day or month, or in the whole window."""

    key: str
    account: str
    entitlement_gpu_ms: int | None = Field(
        description="Its share of what was healthy; null without inventory."
    )
    demand_gpu_ms: int = Field(description="Funded work that ran or could have.")
    owed_gpu_ms: int | None = Field(description="The smaller of both, hour by hour; null without inventory.")
    delivered_gpu_ms: int = Field(description="What ran allocated, before credits.")
    met_gpu_ms: int | None = Field(description="Hour by hour what was delivered of what was owed.")
    hours: int
    hours_with_inventory: int
    gpu_hours: dict[str, str | None] = GpuHours


class OwedSeries(Answer):
    """Owed and delivered over time, by key and account."""

    rows: list[OwedAnswer]
    by: str
    cluster: str
    account: str | None
    from_: str | None = Field(alias="from")
    to: str | None
    timezone: str = Field(description="The zone in which days are cut.")
    reading: str = Field(description="as_known: restated as facts arrive.")
    next: int | None = Field(description="`after` of the next page; null on the last.")
    as_of: str = AsOf


def router(context: Context) -> APIRouter:
    """Return the path, reading through the context's database."""
    routes = APIRouter(prefix="/v1", tags=["warehouse"])

    @routes.get(
        "/owed",
        operation_id="listOwed",
        summary="What accounts were owed and delivered, over time",
        response_model=OwedSeries,
        **needs(Right.READ_ACCOUNTS),
    )
    def list_owed(  # noqa: PLR0913, PLR0917 - a parameter of the query each
        caller: Asking,
        cluster: parameters.RequiredCluster,
        by: OwedKey = OwedBy.DAY,
        account: parameters.Account = None,
        from_: parameters.From = None,
        to: parameters.To = None,
        as_of: parameters.AsOf = None,
        limit: paging.Limit = paging.PAGE_MAX,
        after: paging.After = 0,
    ) -> dict[str, Any]:
        """List leaf accounts by key; `account` keeps it and what is below it.

        The warehouse keeps its newest roll-up: an `as_of` before that is refused.
        """
        caller.cluster(cluster)
        within = caller.account(account)
        with reading(context.engine) as reader:
            queries.require_cluster(reader, cluster)
            if account is not None:
                queries.require_account(reader, account)
            believed = context.believed(reader, as_of)
            calendar = queries.calendar(reader, context.default_calendar, believed)
            from_s, to_s = parameters.window_of(from_, to, calendar)
            found = owed(reader, OwedQuery(cluster, by, within, from_s, to_s, believed), calendar)
            seen = reads.as_of(reader, cluster)
        rows, following = paging.page([row.as_json() for row in found], after, limit)
        return {
            "rows": [{**row, "gpu_hours": hours_of(row)} for row in rows],
            "by": by,
            "cluster": cluster,
            "account": within,
            "from": None if from_s is None else iso(instant(from_s)),
            "to": None if to_s is None else iso(instant(to_s)),
            "timezone": calendar.timezone,
            "reading": READING,
            "next": following,
            "as_of": iso(seen or context.clock.now()),
        }

    return routes
