"""GPU-time used."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from gpuledger.api import parameters
from gpuledger.api.answers import Usage
from gpuledger.api.context import Context
from gpuledger.database.engine import reading
from gpuledger.ledger import queries
from gpuledger.ledger.usage import By, UsageQuery, usage

UsageBy = Annotated[By, Query(description="What the rows are keyed by.")]


def router(context: Context) -> APIRouter:
    """Return the paths, reading through the context's database."""
    routes = APIRouter(prefix="/v1", tags=["ledger"])

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
            queries.require_cluster(reader, cluster)
            believed = context.believed(reader, as_of)
            calendar = queries.calendar(reader, context.default_calendar, believed)
            from_s, to_s = parameters.window_of(from_, to, calendar)
            query = UsageQuery(by=by, cluster=cluster, from_s=from_s, to_s=to_s, as_of=believed)
            return usage(reader, query, context.now_s(), context.default_calendar).as_json()

    return routes
