"""Paths for those who run it: health, readiness, metrics, help about errors, the reference."""

from importlib.metadata import version

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from gpuledger.api import readiness, reference
from gpuledger.api.access import Access, needs
from gpuledger.api.answers import Health, Readiness
from gpuledger.api.context import Context
from gpuledger.api.metrics import Metrics
from gpuledger.api.problems import KINDS
from gpuledger.identity.roles import Right
from gpuledger.kernel.errors import NotFound


def router(context: Context, metrics: Metrics, access: Access) -> APIRouter:
    """Return the paths."""
    routes = APIRouter(tags=["operations"])

    @routes.get(
        "/healthz",
        operation_id="getHealth",
        summary="Is the process alive",
        response_model=Health,
    )
    async def get_health() -> dict[str, str]:
        """Answer without touching the database, and without a thread: a busy process is alive too."""
        return {"status": "ok", "version": version("gpuledger")}

    @routes.get(
        "/readyz",
        operation_id="getReadiness",
        summary="Can it answer questions",
        response_model=Readiness,
    )
    def get_readiness() -> dict[str, str]:
        """Answer 200 when the database is reachable and migrated, else 503 with what is missing."""
        return {"status": "ready", "revision": readiness.require_ready(context.engine)}

    @routes.get(
        "/metrics",
        operation_id="getMetrics",
        summary="Prometheus metrics",
        response_class=PlainTextResponse,
        dependencies=[Depends(access)],
        **needs(Right.READ_BOOKS),
    )
    def get_metrics() -> Response:
        """Answer in the text format that Prometheus scrapes; never fails because the database is away."""
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)

    @routes.get("/problems/{name}", include_in_schema=False)
    def get_problem(name: str) -> PlainTextResponse:
        """Say in a few lines what a kind of error means."""
        for kind in KINDS:
            if kind.name == name:
                return PlainTextResponse(f"{kind.title} (HTTP {kind.status})\n\n{kind.help}\n")
        raise NotFound(
            f"no problem is called {name!r}", hint=f"there are {', '.join(kind.name for kind in KINDS)}"
        )

    @routes.get("/docs", include_in_schema=False)
    def get_reference(request: Request) -> HTMLResponse:
        """Show the reference: one page without scripts, so that it opens where there is no internet."""
        return HTMLResponse(reference.page(request.app.openapi(), str(request.base_url).rstrip("/")))

    return routes
