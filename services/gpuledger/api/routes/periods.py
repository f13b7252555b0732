"""The periods that budgets are for."""

from typing import Any

from fastapi import APIRouter

from gpuledger.api import parameters
from gpuledger.api.access import Asking, needs
from gpuledger.api.answers import Periods
from gpuledger.api.context import Context
from gpuledger.database.engine import reading
from gpuledger.identity.roles import Right
from gpuledger.ledger import periods, queries


def router(context: Context) -> APIRouter:
    """Return the path, reading through the context's database."""
    routes = APIRouter(prefix="/v1", tags=["ledger"])

    @routes.get(
        "/periods",
        operation_id="listPeriods",
        summary="The budget periods of clusters",
        response_model=Periods,
        **needs(Right.READ_CLUSTERS),
    )
    def list_periods(
        caller: Asking, cluster: parameters.Cluster = None, as_of: parameters.AsOf = None
    ) -> dict[str, Any]:
        """List the periods that were opened or have movements, with what was granted in each."""
        cluster = caller.cluster(cluster)
        with reading(context.engine) as reader:
            queries.require_cluster(reader, cluster)
            believed = context.believed(reader, as_of)
            found = periods.periods(reader, cluster, believed)
        return {"periods": [one.as_json() for one in found], "as_of": context.as_of(believed)}

    return routes
