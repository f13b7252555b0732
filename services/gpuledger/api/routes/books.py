"""Paths that say what there is: clusters, books and their chain heads, dead letters."""

import datetime as dt
from typing import Any

from fastapi import APIRouter

from gpuledger.api import parameters
from gpuledger.api.access import Asking, needs
from gpuledger.api.answers import Books, Clusters
from gpuledger.api.context import Context
from gpuledger.database.engine import Reader, reading
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.identity.roles import Right
from gpuledger.kernel.clock import iso
from gpuledger.ledger import queries
from gpuledger.ledger.as_of import heads_at
from gpuledger.warehouse import budgets, reads, spans

ROLLED_UP_SINCE = "it was rolled up again since, and the warehouse keeps no earlier state"
NOT_ROLLED_UP = "nothing of this cluster has been rolled up yet: gpuledger rollup"


def router(context: Context) -> APIRouter:
    """Return the paths, reading through the context's database."""
    routes = APIRouter(prefix="/v1", tags=["books"])

    @routes.get(
        "/clusters",
        operation_id="listClusters",
        summary="Clusters, and the window that can be asked for",
        response_model=Clusters,
        **needs(Right.READ_CLUSTERS),
    )
    def list_clusters(caller: Asking, as_of: parameters.AsOf = None) -> dict[str, Any]:
        """List each cluster with its book's size, the hours that are rolled up, and its budget periods.

        Of what was rolled up at an earlier time nothing is told once there is a newer roll-up.
        """
        with reading(context.engine) as reader:
            believed = context.believed(reader, as_of)
            heads = [
                status
                for status in _heads(reader, believed)
                if status.book != ORG_BOOK and caller.reaches(status.book)
            ]
            rolled_up, periods = spans.spans(reader), budgets.periods(reader)
            gone = {
                status.book
                for status in heads
                if believed is not None and reads.rolled_up_since(reader, status.book, believed)
            }
        rows = [
            {**_cluster(status, None, []), "reason": ROLLED_UP_SINCE}
            if status.book in gone
            else _cluster(status, rolled_up.get(status.book), periods.get(status.book, []))
            for status in heads
        ]
        return {"clusters": rows, "as_of": context.as_of(believed)}

    @routes.get(
        "/books",
        operation_id="listBooks",
        summary="Chain heads and dead letters",
        response_model=Books,
        **needs(Right.READ_BOOKS),
    )
    def list_books(as_of: parameters.AsOf = None) -> dict[str, Any]:
        """List each book's head, and how many dead letters wait for a person."""
        with reading(context.engine) as reader:
            believed = context.believed(reader, as_of)
            heads, dead = _heads(reader, believed), queries.dead_letter_count(reader, believed)
        rows = [{**status._asdict(), "last_recorded_at": iso(status.last_recorded_at)} for status in heads]
        return {"books": rows, "dead_letters": dead, "as_of": context.as_of(believed)}

    return routes


def _heads(reader: Reader, believed: dt.datetime | None) -> list[queries.BookStatus]:
    return queries.book_heads(reader) if believed is None else heads_at(reader, believed)


def _cluster(status: queries.BookStatus, span: spans.Span | None, periods: list[str]) -> dict[str, Any]:
    return {
        "cluster": status.book,
        "rows": status.rows,
        "last_recorded_at": iso(status.last_recorded_at),
        "rolled_up_from": iso(span.from_at) if span else None,
        "rolled_up_to": iso(span.to_at) if span else None,
        "periods": periods,
        "reason": None if span else NOT_ROLLED_UP,
    }
