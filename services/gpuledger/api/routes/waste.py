"""What of charged time was measured and not used, with the account's budget beside it."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from gpuledger.api import parameters
from gpuledger.api.access import Asking, needs
from gpuledger.api.answers import Answer, AsOf, GpuHours
from gpuledger.api.context import Context, hours_of
from gpuledger.database.engine import reading
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.identity.roles import Right
from gpuledger.kernel.clock import instant, iso
from gpuledger.ledger import queries
from gpuledger.ledger.as_of import seq_of, vector_of
from gpuledger.warehouse import reads
from gpuledger.warehouse.waste import WasteBy, WasteQuery, report

WasteKey = Annotated[WasteBy, Query(description="What the rows are keyed by; by `user` needs read-work.")]


class WasteRow(Answer):
    """Charged time of one key, and what became of it."""

    key: str
    cluster: str | None = Field(description="Null where several are summed.")
    account: str | None = Field(description="Null where several are summed.")
    allocated_gpu_ms: int = Field(description="Held by charged runs.")
    sampled_gpu_ms: int = Field(description="What of it was measured; of the rest nothing is known.")
    used_gpu_ms: int = Field(description="Measured time x GPU_UTIL.")
    idle_gpu_ms: int = Field(description="Measured time in which the run was used below 5 %.")
    squatted_gpu_ms: int = Field(description="Idle time of stretches of more than 30 minutes.")
    low_gpu_ms: int = Field(description="Measured time in which the run was used from 5 % to below 15 %.")
    squatting_run_count: int = Field(description="Runs that squatted, counted once a day.")
    budget_gpu_ms: int | None = Field(description="With transfers, of all people of the account.")
    coverage: str | None = Field(description="The measured part of the charged time.")
    idle_of_sampled: str | None = Field(description="The idle part of the measured time.")
    squatted_of_budget: str | None = Field(description="Null without a budget.")
    gpu_hours: dict[str, str | None] = GpuHours


class Waste(Answer):
    """What of the charged time of a period was not used."""

    rows: list[WasteRow]
    by: str
    cluster: str | None
    account: str | None
    period: str | None = Field(description="The period asked for, else the newest there is.")
    periods: list[str] = Field(description="The periods there are, oldest first.")
    from_: str | None = Field(alias="from")
    to: str | None
    timezone: str
    as_of: str = AsOf


def router(context: Context) -> APIRouter:
    """Return the paths, reading through the context's database."""
    routes = APIRouter(prefix="/v1", tags=["warehouse"])

    @routes.get(
        "/waste",
        operation_id="listWaste",
        summary="Charged time that was measured and not used",
        response_model=Waste,
        **needs(Right.READ_ACCOUNTS),
    )
    def list_waste(
        caller: Asking,
        by: WasteKey = WasteBy.ACCOUNT,
        cluster: parameters.Cluster = None,
        account: parameters.Account = None,
        period: parameters.Period = None,
        as_of: parameters.AsOf = None,
    ) -> dict[str, Any]:
        """Return what was idle, squatted and little used of a period, the newest one unless given.

        What was not measured is in none of them. The warehouse keeps its newest roll-up: an `as_of` before that is
        refused.
        """
        if by is WasteBy.USER:
            caller.require(Right.READ_WORK)
        cluster, within = caller.cluster(cluster), caller.account(account)
        with reading(context.engine) as reader:
            queries.require_cluster(reader, cluster)
            if account is not None:
                queries.require_account(reader, account)
            believed = context.believed(reader, as_of)
            calendar = queries.calendar(reader, context.default_calendar, believed)
            seen = reads.as_of(reader, cluster)
            inner = queries.inner_accounts(reader, seq_of(vector_of(reader, believed), ORG_BOOK))
            found = report(reader, WasteQuery(by, cluster, within, period, believed), inner)
        bounds = calendar.period_bounds_s(found.period) if found.period else None
        return {
            "rows": [{**row, "gpu_hours": hours_of(row)} for row in (one.as_json() for one in found.rows)],
            "by": by,
            "cluster": cluster,
            "account": within,
            "period": found.period,
            "periods": found.periods,
            "from": iso(instant(bounds[0])) if bounds else None,
            "to": iso(instant(bounds[1])) if bounds else None,
            "timezone": calendar.timezone,
            "as_of": iso(seen or context.clock.now()),
        }

    return routes
