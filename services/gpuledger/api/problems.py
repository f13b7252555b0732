"""Errors as ``application/problem+json``: the only place where an error meets an HTTP status.

``type`` is a path of this API that opens a page about the error; ``title`` belongs to the type and never
changes; ``detail`` says what was wrong this time; ``hint`` says what to do next.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import psycopg
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from sqlalchemy.exc import DBAPIError
from starlette.exceptions import HTTPException

from gpuledger.api import refusals
from gpuledger.identity.caller import Caller
from gpuledger.identity.roles import RIGHTS, Right
from gpuledger.kernel.errors import (
    Conflict,
    Corrupt,
    Forbidden,
    GpuledgerError,
    KeyReused,
    NotFound,
    Refused,
    Throttled,
    Unavailable,
    Unidentified,
)

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 5


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of error that callers can tell apart."""

    name: str
    status: int
    title: str
    help: str

    @property
    def path(self) -> str:
        """The page about it."""
        return f"/problems/{self.name}"


REFUSED = Kind(
    "refused",
    422,
    "The request cannot be accepted as it is",
    "A parameter is missing, unknown or malformed. The detail names it, errors[] points at it. Mend it.",
)
NOT_FOUND = Kind(
    "not-found",
    404,
    "There is no such thing",
    "The path, account or cluster does not exist. The hint names the nearest, or the command that makes it.",
)
METHOD = Kind(
    "method-not-allowed",
    405,
    "This path does not take that method",
    "The Allow header lists what the path takes; /docs says which is for what.",
)
UNIDENTIFIED = Kind(
    "unidentified",
    401,
    "It is not known who asks",
    "Send Authorization: Bearer TOKEN with a token that is good. An admin of the ledger's host makes one with"
    " `gpuledger token create`.",
)
FORBIDDEN = Kind(
    "forbidden",
    403,
    "The token does not reach that far",
    "Its role has not got the right, or the account or cluster lies outside of it. Ask for less, or with"
    " another token.",
)
KEY_REUSED = Kind(
    "key-reused",
    409,
    "The idempotency key stands for another command",
    "The key was used before with another body. Use a new key for a new command.",
)
CONFLICT = Kind("conflict", 409, "Somebody else was faster", "Read again what you changed, then retry.")
UNAVAILABLE = Kind(
    "unavailable",
    503,
    "The ledger cannot answer now",
    "The database is away or not migrated. Retry-After says when to try again, /readyz what is missing.",
)
THROTTLED = Kind(
    "too-many",
    429,
    "More requests than a caller may send",
    "Wait as Retry-After says. Ask less often: long-lived answers have an ETag, and directives a cursor.",
)
CORRUPT = Kind(
    "corrupt",
    500,
    "A law of the ledger does not hold",
    "Stop writing and call the people who run the ledger. `gpuledger audit verify` names the first bad row.",
)
INTERNAL = Kind(
    "internal",
    500,
    "Something went wrong in the API",
    "This is a fault of ours. The API's log has the traceback of this request.",
)
OTHER = Kind("http-error", 400, "The request failed", "The status code says how; see the detail.")

KINDS = (
    REFUSED,
    NOT_FOUND,
    METHOD,
    UNIDENTIFIED,
    FORBIDDEN,
    KEY_REUSED,
    CONFLICT,
    UNAVAILABLE,
    THROTTLED,
    CORRUPT,
    INTERNAL,
    OTHER,
)

LOG = logging.getLogger("gpuledger.api.problems")

_UNMIGRATED = (
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.InvalidSchemaName,
)


def kind_of(error: GpuledgerError) -> Kind:
    """Return the kind of an error of ours."""
    match error:
        case NotFound():
            return NOT_FOUND
        case Unidentified():
            return UNIDENTIFIED
        case Forbidden():
            return FORBIDDEN
        case KeyReused():
            return KEY_REUSED
        case Refused():
            return REFUSED
        case Conflict():
            return CONFLICT
        case Throttled():
            return THROTTLED
        case Unavailable():
            return UNAVAILABLE
        case Corrupt():
            return CORRUPT
        case _:
            return INTERNAL


def problem(
    request: Request,
    kind: Kind,
    detail: str,
    *,
    hint: str = "",
    status: int | None = None,
    errors: list[dict[str, str]] | None = None,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    """Return a problem document as a response to a request; see ``answer``."""
    return answer(request.url.path, kind, detail, hint=hint, status=status, errors=errors, headers=headers)


def answer(
    path: str,
    kind: Kind,
    detail: str,
    *,
    hint: str = "",
    status: int | None = None,
    errors: list[dict[str, str]] | None = None,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    """Return a problem document.

    Args:
        path: What was asked for.
        kind: The kind of error.
        detail: What was wrong this time.
        hint: What to do next; the kind's help unless given.
        status: The status, where the kind has several.
        errors: Pointers to what is wrong.
        headers: More headers.
    """
    body: dict[str, Any] = {
        "type": kind.path,
        "title": kind.title,
        "status": status or kind.status,
        "detail": detail,
        "hint": hint or kind.help,
        "instance": path,
    }
    if errors:
        body["errors"] = errors
    all_headers = {"Cache-Control": "no-store", **(headers or {})}
    if body["status"] in (429, 503):
        all_headers.setdefault("Retry-After", str(RETRY_AFTER_S))
    return JSONResponse(body, status_code=body["status"], media_type=MEDIA_TYPE, headers=all_headers)


async def _ours(request: Request, error: GpuledgerError) -> Response:
    if isinstance(error, Unidentified | Forbidden):
        refusals.log(request, error.message)
    headers = {"WWW-Authenticate": "Bearer"} if isinstance(error, Unidentified) else {}
    if isinstance(error, Throttled):
        headers = {"Retry-After": str(max(1, ceil(error.wait_s))), **getattr(request.state, "rate", {})}
    # The hint names what is nearest, or what the key stands for, which may be somebody else's.
    is_telling = isinstance(error, NotFound | KeyReused) and not _sees_everything(request)
    hint = "" if is_telling else error.hint
    message = error.message
    if isinstance(error, Unavailable) and error.__cause__ is not None and not _runs_it(request):
        # What a driver says names hosts, databases and users.
        LOG.warning("%s", message)
        message, hint = "what the ledger needs cannot be reached now", ""
    return problem(request, kind_of(error), message, hint=hint, headers=headers)


def _runs_it(request: Request) -> bool:
    caller: Caller | None = getattr(request.state, "caller", None)
    return caller is not None and Right.READ_BOOKS in RIGHTS[caller.role]


def _sees_everything(request: Request) -> bool:
    caller: Caller | None = getattr(request.state, "caller", None)
    return caller is None or caller.is_everywhere


async def _invalid(request: Request, error: RequestValidationError) -> Response:
    errors = [
        {"pointer": "/" + "/".join(map(str, fault["loc"])), "detail": fault["msg"]}
        for fault in error.errors()
    ]
    detail = "; ".join(f"{e['pointer'].rpartition('/')[2]}: {e['detail']}" for e in errors)
    return problem(request, REFUSED, detail, hint="see /docs for what this path takes", errors=errors)


async def _http(request: Request, error: HTTPException) -> Response:
    headers = dict(error.headers) if error.headers else None
    match error.status_code:
        case 404:
            return problem(
                request, NOT_FOUND, f"no page at {request.url.path}", hint="see /docs for the paths there are"
            )
        case 400:  # FastAPI found the body to be no JSON
            return problem(
                request, OTHER, f"the body is no JSON: {error.detail}", status=400, hint="send JSON in UTF-8"
            )
        case 405:
            return problem(
                request, METHOD, f"{request.method} is not taken at {request.url.path}", headers=headers
            )
        case status:
            return problem(request, OTHER, str(error.detail), status=status, headers=headers)


async def _database(request: Request, error: DBAPIError | psycopg.Error) -> Response:
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, _UNMIGRATED):
        return problem(
            request,
            UNAVAILABLE,
            "the database is not migrated to this version's schema",
            hint="gpuledger db upgrade",
        )
    if isinstance(cause, psycopg.OperationalError):
        return problem(
            request,
            UNAVAILABLE,
            "the database was lost while it answered",
            hint="check GPULEDGER_DATABASE_URL and that PostgreSQL runs, then try again",
        )
    raise error


async def _unforeseen(request: Request, error: Exception) -> Response:
    # The traceback goes to the log; a stranger learns the type of the fault and nothing else.
    return problem(request, INTERNAL, f"{type(error).__name__} while answering {request.url.path}")


def install(app: FastAPI) -> None:
    """Make an application answer every error with a problem document."""
    handlers: dict[type[Exception], Callable[..., Awaitable[Response]]] = {
        GpuledgerError: _ours,
        RequestValidationError: _invalid,
        HTTPException: _http,
        DBAPIError: _database,
        psycopg.Error: _database,
        Exception: _unforeseen,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)
