"""The four layers: availability, occupancy, impact and utilisation."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from gpuledger.api import parameters
from gpuledger.api.access import Asking, needs
from gpuledger.api.answers import Layers
from gpuledger.api.context import Context, hours_of
from gpuledger.database.engine import reading
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.identity.roles import Right
from gpuledger.kernel.clock import instant, iso
from gpuledger.ledger import queries
from gpuledger.ledger.as_of import seq_of, vector_of
from gpuledger.ledger.targets import targets
from gpuledger.warehouse import reads
from gpuledger.warehouse.reads import LayersBy, LayersQuery

READING = "as_known"
"""Physical facts are restated as they become known; sealed statements are another reading."""

LayersKey = Annotated[LayersBy, Query(description="What the rows are keyed by.")]


def router(context: Context) -> APIRouter:
    """Return the paths, reading through the context's database."""
    routes = APIRouter(prefix="/v1", tags=["warehouse"])

    @routes.get(
        "/layers",
        operation_id="listLayers",
        summary="Availability, occupancy, impact and utilisation",
        response_model=Layers,
        **needs(Right.READ_CLUSTERS),
    )
    def list_layers(
        caller: Asking,
        by: LayersKey = LayersBy.CLUSTER,
        cluster: parameters.Cluster = None,
        from_: parameters.From = None,
        to: parameters.To = None,
        as_of: parameters.AsOf = None,
    ) -> dict[str, Any]:
        """Return the four layers of a window; every ratio is one of sums, null where data is missing.

        The warehouse keeps its newest roll-up: an `as_of` before that is refused.
        """
        cluster = caller.cluster(cluster)
        with reading(context.engine) as reader:
            queries.require_cluster(reader, cluster)
            believed = context.believed(reader, as_of)
            calendar = queries.calendar(reader, context.default_calendar, believed)
            seen = reads.as_of(reader, cluster)
            org_seq = seq_of(vector_of(reader, believed), ORG_BOOK)
            hoped = targets(reader, cluster, context.now_or(believed), org_seq=org_seq)
            from_s, to_s = parameters.window_of(from_, to, calendar)
            rows = [
                row.as_json()
                for row in reads.layers(reader, LayersQuery(by, cluster, from_s, to_s, believed), calendar)
            ]
        return {
            "rows": [{**row, "gpu_hours": hours_of(row)} for row in rows],
            "by": by,
            "cluster": cluster,
            "from": None if from_s is None else iso(instant(from_s)),
            "to": None if to_s is None else iso(instant(to_s)),
            "timezone": calendar.timezone,
            "targets": hoped,
            "reading": READING,
            "as_of": iso(seen or context.clock.now()),
        }

    return routes
