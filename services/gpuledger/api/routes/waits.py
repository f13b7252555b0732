"""How long requests waited for GPUs."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from gpuledger.api import parameters
from gpuledger.api.access import Asking, needs
from gpuledger.api.answers import Answer, AsOf
from gpuledger.api.context import Context
from gpuledger.database.engine import reading
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.identity.roles import Right
from gpuledger.kernel.clock import instant, iso
from gpuledger.ledger import queries
from gpuledger.ledger.as_of import seq_of, vector_of
from gpuledger.warehouse import reads
from gpuledger.warehouse.waits import WaitsBy, WaitsQuery, WorkClass, waits

WaitsKey = Annotated[WaitsBy, Query(description="What the rows are keyed by.")]
Klass = Annotated[WorkClass | None, Query(alias="class", description="One class; both unless given.")]


class WaitsRow(Answer):
    """Requests of one key, and how long they waited."""

    key: str
    request_count: int = Field(description="Requests that began to wait.")
    started_count: int = Field(description="Those that got their GPUs.")
    at_once_count: int = Field(description="Those of them that got them in the second of the request.")
    waiting_count: int = Field(description="Those that waited still when the day was rolled up.")
    withdrawn_count: int = Field(description="Those that ended without GPUs.")
    p50_s: int | None = Field(description="Seconds within which half have started; null: not known yet.")
    p90_s: int | None = Field(description="Seconds within which nine in ten have; likewise.")
    p99_s: int | None = Field(description="Seconds within which 99 in 100 have; likewise.")
    longest_s: int = Field(description="Seconds of the longest wait so far, over or not.")


class Waits(Answer):
    """Waits of a window."""

    rows: list[WaitsRow]
    by: str
    cluster: str | None
    account: str | None
    class_: str | None = Field(alias="class")
    from_: str | None = Field(alias="from")
    to: str | None
    timezone: str
    as_of: str = AsOf


def router(context: Context) -> APIRouter:
    """Return the paths, reading through the context's database."""
    routes = APIRouter(prefix="/v1", tags=["warehouse"])

    @routes.get(
        "/waits",
        operation_id="listWaits",
        summary="How long requests waited",
        response_model=Waits,
        **needs(Right.READ_ACCOUNTS),
    )
    def list_waits(  # noqa: PLR0913, PLR0917 - a parameter each, as FastAPI reads them
        caller: Asking,
        by: WaitsKey = WaitsBy.SIZE,
        cluster: parameters.Cluster = None,
        account: parameters.Account = None,
        class_: Klass = None,
        from_: parameters.From = None,
        to: parameters.To = None,
        as_of: parameters.AsOf = None,
    ) -> dict[str, Any]:
        """Return waits of the days that a window touches, by the day on which a request could first run.

        Quantiles count who has not started as waiting at least so long (Kaplan and Meier); they are of all waits of
        a row together. The warehouse keeps its newest roll-up: an `as_of` before that is refused.
        """
        cluster, within = caller.cluster(cluster), caller.account(account)
        with reading(context.engine) as reader:
            queries.require_cluster(reader, cluster)
            if account is not None:
                queries.require_account(reader, account)
            believed = context.believed(reader, as_of)
            calendar = queries.calendar(reader, context.default_calendar, believed)
            seen = reads.as_of(reader, cluster)
            from_s, to_s = parameters.window_of(from_, to, calendar)
            inner = queries.inner_accounts(reader, seq_of(vector_of(reader, believed), ORG_BOOK))
            query = WaitsQuery(by, cluster, within, class_, from_s, to_s, believed)
            rows = [row.as_json() for row in waits(reader, query, calendar, inner)]
        return {
            "rows": rows,
            "by": by,
            "cluster": cluster,
            "account": within,
            "class": class_,
            "from": None if from_s is None else iso(instant(from_s)),
            "to": None if to_s is None else iso(instant(to_s)),
            "timezone": calendar.timezone,
            "as_of": iso(seen or context.clock.now()),
        }

    return routes
