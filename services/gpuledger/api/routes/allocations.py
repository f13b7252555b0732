"""The newest allocations of a cluster."""

from typing import Any

from fastapi import APIRouter

from gpuledger.api import parameters
from gpuledger.api.answers import Cycle
from gpuledger.api.context import Context
from gpuledger.database.engine import reading
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger import queries
from gpuledger.ledger.cycles import latest_cycle


def router(context: Context) -> APIRouter:
    """Return the paths, reading through the context's database."""
    routes = APIRouter(prefix="/v1", tags=["ledger"])

    @routes.get(
        "/allocations/current",
        operation_id="getCurrentAllocations",
        summary="The newest policy cycle of a cluster",
        response_model=Cycle,
    )
    def get_current_allocations(cluster: parameters.RequiredCluster) -> dict[str, Any]:
        """Return what was issued, and each decision with its reason."""
        with reading(context.engine) as reader:
            queries.require_cluster(reader, cluster)
            found = latest_cycle(reader, cluster)
        if found is None:
            raise NotFound(
                f"the policy has not run for cluster {cluster!r}", hint=f"gpuledger cycle --cluster {cluster}"
            )
        return {**found, "as_of": context.as_of()}

    return routes
