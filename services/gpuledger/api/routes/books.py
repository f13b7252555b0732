"""Paths that say what there is: clusters, books and their chain heads, dead letters."""

from typing import Any

from fastapi import APIRouter

from gpuledger.api.answers import Books, Clusters
from gpuledger.api.context import Context
from gpuledger.database.engine import reading
from gpuledger.kernel.clock import iso
from gpuledger.ledger import queries
from gpuledger.warehouse import reads

NOT_ROLLED_UP = "nothing of this cluster has been rolled up yet: gpuledger rollup"


def router(context: Context) -> APIRouter:
    """Return the paths, reading through the context's database."""
    routes = APIRouter(prefix="/v1", tags=["books"])

    @routes.get(
        "/clusters",
        operation_id="listClusters",
        summary="Clusters, and the window that can be asked for",
        response_model=Clusters,
    )
    def list_clusters() -> dict[str, Any]:
        """List each cluster with its book's size, the hours that are rolled up, and its budget periods."""
        with reading(context.engine) as reader:
            names = queries.clusters(reader)
            heads = {status.book: status for status in queries.book_heads(reader)}
            spans, periods = reads.spans(reader), reads.periods(reader)
        rows = [_cluster(heads[name], spans.get(name), periods.get(name, [])) for name in names]
        return {"clusters": rows, "as_of": context.as_of()}

    @routes.get(
        "/books",
        operation_id="listBooks",
        summary="Chain heads and dead letters",
        response_model=Books,
    )
    def list_books() -> dict[str, Any]:
        """List each book's head, and how many dead letters wait for a person."""
        with reading(context.engine) as reader:
            heads, dead = queries.book_heads(reader), queries.dead_letter_count(reader)
        rows = [{**status._asdict(), "last_recorded_at": iso(status.last_recorded_at)} for status in heads]
        return {"books": rows, "dead_letters": dead, "as_of": context.as_of()}

    return routes


def _cluster(status: queries.BookStatus, span: reads.Span | None, periods: list[str]) -> dict[str, Any]:
    return {
        "cluster": status.book,
        "rows": status.rows,
        "last_recorded_at": iso(status.last_recorded_at),
        "rolled_up_from": iso(span.from_at) if span else None,
        "rolled_up_to": iso(span.to_at) if span else None,
        "periods": periods,
        "reason": None if span else NOT_ROLLED_UP,
    }
