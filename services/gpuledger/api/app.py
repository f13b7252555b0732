"""The composition root of the API: every adapter is named here, and nothing connects at import time."""

from importlib.metadata import version
from typing import Any

import sqlalchemy as sa
from fastapi import APIRouter, Depends, FastAPI
from starlette.middleware.gzip import GZipMiddleware

from gpuledger.api import document, problems
from gpuledger.api.access import Access, Mode, Provider
from gpuledger.api.caching import NotModified, TaggedResponse
from gpuledger.api.context import Context
from gpuledger.api.limits import EVENTS_BYTES_MAX, BoundedBody
from gpuledger.api.metrics import CountRequests, Metrics
from gpuledger.api.parameters import known_only
from gpuledger.api.rates import Limiter
from gpuledger.api.routes import (
    accounts,
    admissions,
    allocations,
    balances,
    books,
    budgets,
    callers,
    closes,
    events,
    exports,
    fairshare,
    hosts,
    layers,
    operations,
    orders,
    owed,
    periods,
    proposals,
    queue,
    statements,
    usage,
    waits,
    waste,
    workloads,
)
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock
from gpuledger.streams.protocol import Broker

DESCRIPTION = (
    "Balances, allocations, usage and the four layers of GPU clusters, as the ledger's book has them. "
    "Amounts are integers in gpu_ms (milli-GPU x seconds) with decimal GPU-hours beside them, ratios are "
    "decimal strings between 0 and 1, null is unknown. Every answer says as of when. Errors are "
    "application/problem+json with a hint."
)
_COMPRESS_FROM_BYTES = 1024
_COMPRESS_LEVEL = 5


class Application(FastAPI):
    """FastAPI, with an OpenAPI document of our own finish."""

    def openapi(self) -> dict[str, Any]:
        """Return the document."""
        return document.of(self)


def create_app(  # noqa: PLR0913 - the composition root names every adapter
    engine: sa.Engine,
    clock: Clock,
    calendar: Calendar | None = None,
    *,
    mode: Mode = "open",
    broker: Broker | None = None,
    provider: Provider | None = None,
    by_another: bool = True,
    limiter: Limiter | None = None,
) -> FastAPI:
    """Return the application.

    Args:
        engine: The database; the caller disposes of it.
        clock: The present.
        calendar: Cuts days and periods until the book holds the organisation's zone; UTC unless given.
        mode: Who is let in.
        broker: Where events go that are sent here; straight into the books without one.
        provider: Whose identity tokens open the API beside the ledger's own.
        by_another: Whether who proposed something may not approve it.
        limiter: How often each caller may ask; as often as they like without one.
    """
    context = Context(engine, clock, calendar or Calendar())
    metrics = Metrics(context)
    access = Access(context, mode, provider, limiter)
    app = Application(
        title="gpuledger",
        version=version("gpuledger"),
        description=DESCRIPTION,
        default_response_class=TaggedResponse,
        docs_url=None,  # the usual pages load scripts from elsewhere; /docs is ours
        redoc_url=None,
        redirect_slashes=False,
    )
    for routes in _routers(context, broker, by_another=by_another):
        app.include_router(routes, dependencies=[Depends(access), Depends(known_only)])
    app.include_router(operations.router(context, metrics, access))
    problems.install(app)
    # The last one added meets the request first.
    app.add_middleware(NotModified)
    app.add_middleware(BoundedBody, larger={events.PATH: EVENTS_BYTES_MAX})
    app.add_middleware(GZipMiddleware, minimum_size=_COMPRESS_FROM_BYTES, compresslevel=_COMPRESS_LEVEL)
    app.add_middleware(CountRequests, metrics=metrics)
    return app


def _routers(context: Context, broker: Broker | None, *, by_another: bool) -> list[APIRouter]:
    """Return the paths that are not for everybody, subject by subject."""
    subjects = (
        balances,
        accounts,
        allocations,
        workloads,
        usage,
        layers,
        owed,
        queue,
        budgets,
        waits,
        waste,
        books,
        statements,
        periods,
        closes,
        exports,
        hosts,
        admissions,
        orders,
    )
    return [
        *(subject.router(context) for subject in subjects),
        events.router(context, broker),
        proposals.router(context, by_another=by_another),
        fairshare.router(),
        callers.router(context),
    ]
