"""Hosts of clusters: how well they are, which are being emptied, what failed and who was credited for it."""

from typing import Any

from fastapi import APIRouter
from pydantic import Field

from gpuledger.api import paging, parameters
from gpuledger.api.access import Asking, needs
from gpuledger.api.answers import Answer, AsOf
from gpuledger.api.context import Context
from gpuledger.database.engine import reading
from gpuledger.identity.roles import Right
from gpuledger.ledger import queries
from gpuledger.ledger.fleet import installed_hosts
from gpuledger.ledger.incident_report import incidents
from gpuledger.policy.drains import drains

Next = Field(description="`after` of the next page; null on the last.")


class HostRow(Answer):
    """A host that is installed."""

    cluster: str
    host: str
    gpu_model: str
    gpus: int = Field(description="Whole devices.")
    usable_gpus: int = Field(description="Those of them that may take new runs.")
    state: str = Field(description="healthy, reserved, draining, maintenance or unhealthy: its worst part's.")
    since: str
    reason: str | None = Field(description="A short code, such as `xid-79`.")
    partial_use: bool = Field(description="Whether the other devices may be used while some are in trouble.")


class Hosts(Answer):
    """Installed hosts."""

    hosts: list[HostRow]
    next: int | None = Next
    as_of: str = AsOf


class StayingRun(Answer):
    """A run that is still on a host that is being emptied."""

    workload: str
    run: str
    account: str
    gpus_milli: int = Field(description="What it holds on that host, in milli-GPU.")
    protected_until: str = Field(description="From this instant on it may be told to leave.")


class DrainRow(Answer):
    """A host that takes no new runs, and is to be empty."""

    cluster: str
    host: str
    gpus_milli: int
    empty_by: str
    certainty: str = Field(
        description="bound: as long as cycles come; estimate: it rests on a guessed place."
    )
    text: str
    runs: list[StayingRun] = Field(description="Who is still there, of what the caller reaches.")


class Drains(Answer):
    """Drains in progress."""

    drains: list[DrainRow]
    next: int | None = Next
    as_of: str = AsOf


class CreditedRun(Answer):
    """A run that a failure ended."""

    run: str = Field(description="workload/run.")
    account: str | None
    state: str = Field(
        description="credited, reversed, withdrawn, credited under another incident, not credited"
    )
    credited_gpu_ms: int
    credited_under: str | None
    reason: str | None = Field(description="Why the credit was reversed.")
    by: str | None = Field(description="Who reversed it.")


class IncidentAnswer(Answer):
    """A failure of hardware."""

    cluster: str
    incident: str
    host: str
    fault: str
    gpu_uuids: list[str] | None
    noticed_at: str
    runs: list[CreditedRun] = Field(description="Of what the caller reaches.")
    credited_gpu_ms: int = Field(description="What these runs were given back.")


class Incidents(Answer):
    """Failures of hardware, and what was credited for them."""

    incidents: list[IncidentAnswer]
    next: int | None = Next
    as_of: str = AsOf


def router(context: Context) -> APIRouter:
    """Return the paths, reading through the context's database."""
    routes = APIRouter(prefix="/v1", tags=["hosts"])
    _add_hosts(routes, context)
    _add_drains(routes, context)
    _add_incidents(routes, context)
    return routes


def _add_hosts(routes: APIRouter, context: Context) -> None:
    @routes.get(
        "/hosts",
        operation_id="listHosts",
        summary="Installed hosts, and how well they are",
        response_model=Hosts,
        **needs(Right.READ_CLUSTERS),
    )
    def list_hosts(
        caller: Asking,
        cluster: parameters.Cluster = None,
        as_of: parameters.AsOf = None,
        limit: paging.Limit = paging.PAGE_MAX,
        after: paging.After = 0,
    ) -> dict[str, Any]:
        """List the hosts that are installed now, by cluster and name."""
        cluster = caller.cluster(cluster)
        with reading(context.engine) as reader:
            believed = context.believed(reader, as_of)
            found = installed_hosts(reader, cluster, context.now_or(believed), believed)
        rows, following = paging.page(found, after, limit)
        return {
            "hosts": [row.as_json() for row in rows],
            "next": following,
            "as_of": context.as_of(believed),
        }


def _add_drains(routes: APIRouter, context: Context) -> None:
    @routes.get(
        "/drains",
        operation_id="listDrains",
        summary="Hosts that are being emptied",
        response_model=Drains,
        **needs(Right.READ_WORK),
    )
    def list_drains(
        caller: Asking,
        cluster: parameters.Cluster = None,
        as_of: parameters.AsOf = None,
        limit: paging.Limit = paging.PAGE_MAX,
        after: paging.After = 0,
    ) -> dict[str, Any]:
        """List each draining host with who is still there, and by when it is empty."""
        cluster = caller.cluster(cluster)
        with reading(context.engine) as reader:
            believed = context.believed(reader, as_of)
            found = drains(reader, cluster, at_s=context.now_or(believed), as_of=believed)
        rows, following = paging.page(found, after, limit)
        told = [{**row, "runs": caller.visible(row["runs"])} for row in (one.as_json() for one in rows)]
        return {"drains": told, "next": following, "as_of": context.as_of(believed)}


def _add_incidents(routes: APIRouter, context: Context) -> None:
    @routes.get(
        "/incidents",
        operation_id="listIncidents",
        summary="Failures of hardware, and credits for them",
        response_model=Incidents,
        **needs(Right.READ_WORK),
    )
    def list_incidents(
        caller: Asking,
        cluster: parameters.Cluster = None,
        from_: parameters.From = None,
        to: parameters.To = None,
        as_of: parameters.AsOf = None,
        limit: paging.Limit = paging.PAGE_MAX,
        after: paging.After = 0,
    ) -> dict[str, Any]:
        """List the failures noticed in a window, by cluster and time, with the runs that each ended."""
        cluster = caller.cluster(cluster)
        with reading(context.engine) as reader:
            believed = context.believed(reader, as_of)
            calendar = queries.calendar(reader, context.default_calendar, believed)
            from_s, to_s = parameters.window_of(from_, to, calendar)
            found = incidents(reader, cluster, from_s, to_s, believed)
        rows, following = paging.page(found, after, limit)
        told = []
        for row in (one.as_json() for one in rows):
            # Of a run that nothing is known of nobody knows whose it is.
            own = [
                run
                for run in row["runs"]
                if caller.scope.subtree is None or (run["account"] and caller.scope.holds(run["account"]))
            ]
            told.append({**row, "runs": own, "credited_gpu_ms": sum(run["credited_gpu_ms"] for run in own)})
        return {"incidents": told, "next": following, "as_of": context.as_of(believed)}
