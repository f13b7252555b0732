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
from gpuledger.kernel.clock import instant, iso
from gpuledger.ledger import queries
from gpuledger.ledger.as_of import seq_of, vector_of
from gpuledger.warehouse import budgets, reads


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
            inner = queries.inner_accounts(reader, seq_of(vector_of(reader, believed), ORG_BOOK))
            found = budgets.report(reader, cluster, period, inner)
        bounds = calendar.period_bounds_s(found.period) if found.period else None
        return {
            "rows": [{**row, "gpu_hours": hours_of(row)} for row in caller.visible(found.rows)],
            "cluster": cluster,
            "period": found.period,
            "periods": found.periods,
            "from": iso(instant(bounds[0])) if bounds else None,
            "to": iso(instant(bounds[1])) if bounds else None,
            "timezone": calendar.timezone,
            "reading": READING,
            "as_of": iso(seen or context.clock.now()),
        }

    return routes
