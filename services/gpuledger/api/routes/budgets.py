"""Budget versus actual, with the variance by cause."""

from typing import Any

from fastapi import APIRouter

from gpuledger.api import parameters
from gpuledger.api.access import Asking, needs
from gpuledger.api.answers import BudgetVersusActual
from gpuledger.api.context import Context, hours_of
from gpuledger.api.routes.layers import READING
from gpuledger.database.engine import reading
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.identity.roles import Right
from gpuledger.kernel.accounts import own_path
from gpuledger.kernel.clock import instant, iso
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger import queries
from gpuledger.ledger.as_of import seq_of, vector_of
from gpuledger.warehouse import reads

ROLL_UP = "gpuledger rollup"
NO_INVENTORY = (
    "no inventory of this cluster, so no entitlement: name its GPUs in a budget file, then "
    f"gpuledger budget apply FILE and {ROLL_UP}"
)


def router(context: Context) -> APIRouter:
    """Return the paths, reading through the context's database."""
    routes = APIRouter(prefix="/v1", tags=["warehouse"])

    @routes.get(
        "/budget-vs-actual",
        operation_id="getBudgetVersusActual",
        summary="Budget against actual, with the variance by cause",
        response_model=BudgetVersusActual,
        **needs(Right.READ_ACCOUNTS),
    )
    def get_budget_versus_actual(
        caller: Asking,
        cluster: parameters.Cluster = None,
        period: parameters.Period = None,
        as_of: parameters.AsOf = None,
    ) -> dict[str, Any]:
        """Return the leaf accounts of a period, the newest one unless given.

        The warehouse keeps its newest roll-up: an `as_of` before that is refused.
        """
        cluster = caller.cluster(cluster)
        with reading(context.engine) as reader:
            queries.require_cluster(reader, cluster)
            believed = context.believed(reader, as_of)
            reads.require_state_of(reader, cluster, believed)
            calendar = queries.calendar(reader, context.default_calendar, believed)
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
            inner = queries.inner_accounts(reader, seq_of(vector_of(reader, believed), ORG_BOOK))
        for row in rows:  # what an inner account owns itself is a leaf of its own
            row["account"] = own_path(row["account"]) if row["account"] in inner else row["account"]
        bounds = calendar.period_bounds_s(chosen) if chosen else None
        return {
            "rows": [_with_reason(row) for row in caller.visible(rows)],
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
