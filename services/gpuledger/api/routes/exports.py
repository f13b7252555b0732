"""Tables for other programs: entries, use, and statements of closes, as files that are streamed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import StreamingResponse

from gpuledger.api import parameters
from gpuledger.api.access import Asking, needs
from gpuledger.api.context import Context
from gpuledger.api.exporting import MEDIA, Exports, Form, Kind, Table, negotiated
from gpuledger.api.routes.closes import ClusterPath, PeriodPath, Version
from gpuledger.api.routes.usage import UsageBy, asked_key
from gpuledger.close.document import Physical, Weighted
from gpuledger.close.making import make
from gpuledger.database.engine import reading
from gpuledger.identity.roles import Right
from gpuledger.ledger import queries
from gpuledger.ledger.close_rows import close_of
from gpuledger.ledger.entries import Entry, iter_entries
from gpuledger.ledger.usage import By, UsageQuery, usage

AskedForm = Annotated[
    Form | None,
    Query(
        alias="format",
        description="How the table is written; else as Accept says, and CSV unless that says one.",
    ),
]

_OF_ENTRIES: Mapping[str, Kind] = {
    name: {
        "seq": Kind.WHOLE, "amount": Kind.WHOLE, "reverses_seq": Kind.WHOLE, "recorded_at": Kind.INSTANT,
        "effective_on": Kind.DAY,
    }.get(name, Kind.TEXT)
    for name in Entry._fields
}  # fmt: skip
_OF_USAGE: Mapping[str, Kind] = {
    "key": Kind.TEXT, "gpu_ms": Kind.WHOLE, "provisional_gpu_ms": Kind.WHOLE, "used_gpu_ms": Kind.WHOLE,
    "coverage": Kind.TEXT,
}  # fmt: skip
_AMOUNTS = (
    *(f"{name}_gpu_ms_weighted" for name in Weighted.__struct_fields__),
    *(f"{name}_gpu_ms" for name in Physical.__struct_fields__),
)
_OF_STATEMENTS: Mapping[str, Kind] = {
    "cluster": Kind.TEXT, "period": Kind.TEXT, "version": Kind.WHOLE, "account": Kind.TEXT,
    **dict.fromkeys(_AMOUNTS, Kind.WHOLE),
}  # fmt: skip

_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The table, row by row.",
        "content": {
            media.partition(";")[0]: {"schema": {"type": "string", "format": "binary"}}
            for media in MEDIA.values()
        },
    }
}


def router(context: Context) -> APIRouter:
    """Return the paths, reading through the context's database."""
    routes = APIRouter(prefix="/v1/exports", tags=["exports"])
    exports = Exports()
    _add_entries(routes, context, exports)
    _add_usage(routes, context, exports)
    _add_statements(routes, context, exports)
    return routes


def _add_entries(routes: APIRouter, context: Context, exports: Exports) -> None:
    @routes.get(
        "/entries",
        operation_id="exportEntries",
        summary="Every entry of a cluster's book, as a file",
        response_class=Table,
        responses=_ANSWERS,
        **needs(Right.READ_WORK),
    )
    def export_entries(
        request: Request,
        caller: Asking,
        cluster: parameters.RequiredCluster,
        period: parameters.Period = None,
        account: parameters.Account = None,
        form: AskedForm = None,
        as_of: parameters.AsOf = None,
    ) -> StreamingResponse:
        """Stream both sides of every posting, of the accounts within reach, in the order of the book."""
        caller.cluster(cluster)
        within = caller.account(account)

        def batches() -> Iterator[Sequence[Sequence[Any]]]:
            with reading(context.engine) as reader:
                if account is not None:
                    queries.require_account(reader, account)
                believed = context.believed(reader, as_of)
                yield from iter_entries(reader, cluster, period=period, within=within, as_of=believed)

        return exports.response(caller.name, "entries", _form(request, form), _OF_ENTRIES, batches)


def _add_usage(routes: APIRouter, context: Context, exports: Exports) -> None:
    @routes.get(
        "/usage",
        operation_id="exportUsage",
        summary="GPU-time used, as a file",
        response_class=Table,
        responses=_ANSWERS,
        **needs(Right.READ_ACCOUNTS),
    )
    def export_usage(  # noqa: PLR0913, PLR0917 - a parameter of the query each
        request: Request,
        caller: Asking,
        by: UsageBy = By.ACCOUNT,
        cluster: parameters.Cluster = None,
        account: parameters.Account = None,
        from_: parameters.From = None,
        to: parameters.To = None,
        form: AskedForm = None,
        as_of: parameters.AsOf = None,
    ) -> StreamingResponse:
        """Write the rows of `/v1/usage` for the same question."""
        key = asked_key(caller, by)
        cluster, within = caller.cluster(cluster), caller.account(account)
        with reading(context.engine) as reader:
            queries.require_cluster(reader, cluster)
            if account is not None:
                queries.require_account(reader, account)
            believed = context.believed(reader, as_of)
            calendar = queries.calendar(reader, context.default_calendar, believed)
            from_s, to_s = parameters.window_of(from_, to, calendar)
            query = UsageQuery(key, cluster, within, from_s=from_s, to_s=to_s, as_of=believed)
            found = usage(reader, query, context.now_s(), context.default_calendar).as_json()["rows"]
        rows = [[row[name] for name in _OF_USAGE] for row in found]
        return exports.response(
            caller.name, "usage", _form(request, form), _OF_USAGE, lambda: iter([rows] if rows else [])
        )


def _add_statements(routes: APIRouter, context: Context, exports: Exports) -> None:
    @routes.get(
        "/statements/{cluster}/{period}",
        operation_id="exportStatement",
        summary="The lines of a close's statement, as a file",
        response_class=Table,
        responses=_ANSWERS,
        **needs(Right.READ_ACCOUNTS),
    )
    def export_statement(
        request: Request,
        caller: Asking,
        cluster: ClusterPath,
        period: PeriodPath,
        version: Version = None,
        form: AskedForm = None,
        as_of: parameters.AsOf = None,
    ) -> StreamingResponse:
        """Write what was booked into a period for each account within reach, as its close has it."""
        caller.cluster(cluster)
        with reading(context.engine) as reader:
            queries.require_cluster(reader, cluster)
            believed = context.believed(reader, as_of)
            rows = close_of(reader, cluster, period, version, believed)
            lines = make(reader, cluster, period, rows.version).document.accounts
        told = [
            [cluster, period, rows.version, line.account, *(line.amounts()[name] for name in _AMOUNTS)]
            for line in lines
            if caller.scope.holds(line.account)
        ]
        name = f"statement-{period}-v{rows.version}"
        return exports.response(
            caller.name, name, _form(request, form), _OF_STATEMENTS, lambda: iter([told] if told else [])
        )


def _form(request: Request, asked: Form | None) -> Form:
    return negotiated(asked, request.headers.get("accept", ""))
