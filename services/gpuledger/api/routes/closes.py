"""Closes of budget periods: their versions, and the sealed document of each."""

from collections import OrderedDict
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Path, Query
from pydantic import Field

from gpuledger.api import paging, parameters
from gpuledger.api.access import Asking, needs
from gpuledger.api.answers import Answer, AsOf
from gpuledger.api.context import Context
from gpuledger.close.document import Document
from gpuledger.close.making import make
from gpuledger.close.statement import totals
from gpuledger.database.engine import Reader, reading
from gpuledger.identity.caller import Scope
from gpuledger.identity.roles import Right
from gpuledger.kernel.clock import iso
from gpuledger.kernel.errors import Corrupt
from gpuledger.ledger import queries
from gpuledger.ledger.close_rows import CloseRows, close_of, list_closes

KEPT_MAX = 16
"""How many sealed documents a process keeps: making one reads all rows that it stands on."""

Version = Annotated[
    int | None, Query(description="Of the close; the newest unless given.", ge=1, le=2**31 - 1)
]
ClusterPath = Annotated[
    str, Path(description="The cluster.", max_length=200, pattern=parameters.PRINTABLE, examples=["philly"])
]
PeriodPath = Annotated[
    str, Path(description="The budget period, YYYY-MM.", pattern=parameters.PERIOD, examples=["2017-10"])
]


class CloseRow(Answer):
    """One version of the close of a period."""

    cluster: str
    period: str
    version: int = Field(description="1 for the first close, one more after each reopening.")
    state: str = Field(description="closing, closed (settled), sealed or reopened")
    closing_seq: int
    begun_at: str
    closed_seq: int | None
    sealed_seq: int | None
    sealed_at: str | None
    digest: str | None = Field(description="SHA-256 of the document in its canonical form, hexadecimal.")
    reopened_seq: int | None


class Closes(Answer):
    """Closes, by cluster, period and version."""

    closes: list[CloseRow]
    next: int | None = Field(description="`after` of the next page; null on the last.")
    as_of: str = AsOf


class OneClose(CloseRow):
    """One version of a close, and what was sealed."""

    document: dict[str, Any] | None = Field(
        description="What was sealed, made from the journal and held against the digest; null with a reason."
    )
    whole: bool = Field(
        description="Whether it is all of it; else accounts, corrections and totals are those within reach."
    )
    reason: str | None = Field(description="Why there is no document.")
    as_of: str = AsOf


def router(context: Context) -> APIRouter:
    """Return the paths, reading through the context's database."""
    routes = APIRouter(prefix="/v1", tags=["ledger"])
    kept = Kept()

    @routes.get(
        "/closes",
        operation_id="listCloses",
        summary="Closes of budget periods, with their versions and digests",
        response_model=Closes,
        **needs(Right.READ_ACCOUNTS),
    )
    def list_every_close(
        caller: Asking,
        cluster: parameters.Cluster = None,
        period: parameters.Period = None,
        as_of: parameters.AsOf = None,
        limit: paging.Limit = paging.PAGE_MAX,
        after: paging.After = 0,
    ) -> dict[str, Any]:
        """List every version of every close; the one of a period that is not reopened holds."""
        cluster = caller.cluster(cluster)
        with reading(context.engine) as reader:
            queries.require_cluster(reader, cluster)
            believed = context.believed(reader, as_of)
            found = list_closes(reader, cluster, period, believed)
        rows, following = paging.page(found, after, limit)
        return {"closes": [_row(row) for row in rows], "next": following, "as_of": context.as_of(believed)}

    @routes.get(
        "/closes/{cluster}/{period}",
        operation_id="getClose",
        summary="One close, and the document that was sealed",
        response_model=OneClose,
        **needs(Right.READ_ACCOUNTS),
    )
    def get_close(
        caller: Asking,
        cluster: ClusterPath,
        period: PeriodPath,
        version: Version = None,
        as_of: parameters.AsOf = None,
    ) -> dict[str, Any]:
        """Return a version of a close; who reaches a part of the accounts gets the document cut to it."""
        caller.cluster(cluster)
        with reading(context.engine) as reader:
            queries.require_cluster(reader, cluster)
            believed = context.believed(reader, as_of)
            rows = close_of(reader, cluster, period, version, believed)
            document = kept.document(reader, rows) if rows.digest is not None else None
        return {
            **_row(rows),
            "document": None if document is None else msgspec.to_builtins(_cut(document, caller.scope)),
            "whole": document is not None and caller.scope.subtree is None,
            "reason": None if document is not None else "it was not sealed",
            "as_of": context.as_of(believed),
        }

    return routes


class Kept:
    """Sealed documents that were asked for lately: what is sealed never changes."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str, int, str], Document] = OrderedDict()

    def document(self, reader: Reader, rows: CloseRows) -> Document:
        """Return the document of a close that is sealed.

        Raises:
            Corrupt: When the journal no longer gives what was sealed.
        """
        cluster, period = rows.closing.cluster, rows.closing.period
        key = (cluster, period, rows.version, rows.digest or "")
        found = self._kept.get(key)
        if found is None:
            made = make(reader, cluster, period, rows.version)
            if made.digest != rows.digest:
                raise Corrupt(
                    f"version {rows.version} of the close of {period} of {cluster} is not what was sealed",
                    hint=f"gpuledger close verify {period} --cluster {cluster} says what has changed",
                )
            found = made.document
        self._kept[key] = found
        while len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)
        return found


def _row(rows: CloseRows) -> dict[str, Any]:
    state = "closing"
    if rows.reopened_seq is not None:
        state = "reopened"
    elif rows.digest is not None:
        state = "sealed"
    elif rows.closed_seq is not None:
        state = "closed"
    return {
        "cluster": rows.closing.cluster,
        "period": rows.closing.period,
        "version": rows.version,
        "state": state,
        "closing_seq": rows.closing_seq,
        "begun_at": iso(rows.closing_at),
        "closed_seq": rows.closed_seq,
        "sealed_seq": rows.sealed_seq,
        "sealed_at": rows.sealed_at and iso(rows.sealed_at),
        "digest": rows.digest,
        "reopened_seq": rows.reopened_seq,
    }


def _cut(document: Document, scope: Scope) -> Document:
    """Return a document with the accounts that a scope holds, and with their totals."""
    if scope.subtree is None:
        return document
    lines = [line for line in document.accounts if scope.holds(line.account)]
    late = [line for line in document.late if scope.holds(line.account)]
    return msgspec.structs.replace(
        document, accounts=lines, late=late, totals=totals(lines), reconciled=None, supersedes=None
    )
