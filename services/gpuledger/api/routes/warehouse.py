"""Paths that read the warehouse: the four layers, and budget versus actual."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from gpuledger.api import parameters
from gpuledger.api.answers import BudgetVersusActual, Layers
from gpuledger.api.context import Context, hours_of, iso, require_cluster
from gpuledger.database.engine import reading
from gpuledger.kernel.clock import instant
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger import queries
from gpuledger.warehouse import reads
from gpuledger.warehouse.reads import LayersBy, LayersQuery

READING = "as_known"
"""Physical facts are restated as they become known; sealed statements are another reading."""

ROLL_UP = "gpuledger rollup"
NO_INVENTORY = (
    "no inventory of this cluster, so no entitlement: name its GPUs in a budget file, then "
    f"gpuledger budget apply FILE and {ROLL_UP}"
)

LayersKey = Annotated[LayersBy, Query(description="What the rows are keyed by.")]


def router(context: Context) -> APIRouter:
    """Return the paths, reading through the context's database."""
    routes = APIRouter(prefix="/v1", tags=["warehouse"])

    @routes.get(
        "/layers",
        operation_id="listLayers",
        summary="Availability, occupancy, impact and utilisation",
        response_model=Layers,
    )
    def list_layers(
        by: LayersKey = LayersBy.CLUSTER,
        cluster: parameters.Cluster = None,
        from_: parameters.From = None,
        to: parameters.To = None,
    ) -> dict[str, Any]:
        """Return the four layers of a window; every ratio is one of sums, null where data is missing."""
        with reading(context.engine) as reader:
            require_cluster(reader, cluster)
            calendar = queries.calendar(reader, context.default_calendar)
            seen = reads.as_of(reader, cluster)
            from_s, to_s = parameters.window_of(from_, to, calendar)
            rows = [
                row.as_json()
                for row in reads.layers(reader, LayersQuery(by, cluster, from_s, to_s), calendar)
            ]
        return {
            "rows": [{**row, "gpu_hours": hours_of(row)} for row in rows],
            "by": by,
            "cluster": cluster,
            "from": None if from_s is None else iso(instant(from_s)),
            "to": None if to_s is None else iso(instant(to_s)),
            "timezone": calendar.timezone,
            "reading": READING,
            "as_of": iso(seen or context.clock.now()),
        }

    @routes.get(
        "/budget-vs-actual",
        operation_id="getBudgetVersusActual",
        summary="Budget against actual, with the variance by cause",
        response_model=BudgetVersusActual,
    )
    def get_budget_versus_actual(
        cluster: parameters.Cluster = None, period: parameters.Period = None
    ) -> dict[str, Any]:
        """Return the leaf accounts of a period, the newest one unless given."""
        with reading(context.engine) as reader:
            require_cluster(reader, cluster)
            calendar = queries.calendar(reader, context.default_calendar)
            seen = reads.as_of(reader, cluster)
            every = reads.periods(reader)
            known = sorted({p for name, keys in every.items() if cluster in (None, name) for p in keys})
            chosen = period or (known[-1] if known else None)
            if period is not None and known and period not in known:
                raise NotFound(
                    f"no budget of {cluster or 'any cluster'} in {period}",
                    hint=f"periods there are: {known[0]} to {known[-1]}; {ROLL_UP} makes newer ones",
                )
            rows = reads.budget_rows(reader, cluster, chosen) if chosen else []
        bounds = calendar.period_bounds_s(chosen) if chosen else None
        return {
            "rows": [_with_reason(row) for row in rows],
            "cluster": cluster,
            "period": chosen,
            "periods": known,
            "from": iso(instant(bounds[0])) if bounds else None,
            "to": iso(instant(bounds[1])) if bounds else None,
            "timezone": calendar.timezone,
            "reading": READING,
            "as_of": iso(seen or context.clock.now()),
        }

    return routes


def _with_reason(row: dict[str, Any]) -> dict[str, Any]:
    reason = NO_INVENTORY if row["owed_gpu_ms"] is None else None
    return {**row, "reason": reason, "gpu_hours": hours_of(row)}
