"""Orders: grants and transfers of GPU-time. Each is booked once per key, and names who gave it."""

from typing import Any

from fastapi import APIRouter
from pydantic import Field

from gpuledger.api.access import Asking, needs
from gpuledger.api.bodies import Body, DryRun, GpuMs, Key, Name, Reason, UtcInstant
from gpuledger.api.context import Context
from gpuledger.api.outcomes import Ordered
from gpuledger.api.parameters import PERIOD
from gpuledger.database.engine import reading
from gpuledger.events.budget import Granted, Transferred
from gpuledger.identity.roles import Right
from gpuledger.kernel.rollover import written
from gpuledger.ledger import queries
from gpuledger.ledger.commands import carry_out, check


class OrderBody(Body):
    """What an order about GPU-time has in common."""

    cluster: Name
    account: Name = Field(description="Who gets it, or who gives it away.")
    period: str = Field(pattern=PERIOD, description="Budget period, YYYY-MM.", examples=["2026-12"])
    gpu_ms: GpuMs
    reason: Reason


class GrantBody(OrderBody):
    """GPU-time for an account; on an inner account a limit for all below it."""

    priority: int | None = Field(default=None, ge=-(10**9), le=10**9, description="Order among lots.")
    expires_at: UtcInstant | None = Field(
        default=None,
        strict=False,
        description="When what is left of it is gone; the end of the period unless given.",
    )
    rollover: str | None = Field(default=None, description="none, all, max 100, min 10 max 100")


class TransferBody(OrderBody):
    """GPU-time that one leaf gives to another."""

    to: Name


def router(context: Context) -> APIRouter:
    """Return the paths, writing through the context's database."""
    routes = APIRouter(prefix="/v1", tags=["orders"])

    @routes.post(
        "/budget/grants",
        operation_id="grant",
        summary="Give GPU-time to an account",
        response_model=Ordered,
        **needs(Right.CHANGE_BUDGETS),
    )
    def grant(caller: Asking, body: GrantBody, key: Key, dry_run: DryRun = False) -> dict[str, Any]:  # noqa: FBT002
        """Grant GPU-time for a period; on an inner account it is a limit for all below it."""
        caller.cluster(body.cluster)
        caller.require_below(body.account)
        with reading(context.engine) as reader:
            is_limit = queries.is_inner(reader, body.account)
        command = Granted(
            account=body.account, cluster=body.cluster, period=body.period, gpu_ms=body.gpu_ms,
            reason=body.reason, by=caller.name, priority=body.priority, expires_at=body.expires_at,
            rollover=written(body.rollover), limit=is_limit,
        )  # fmt: skip
        return _given(context, command, key, dry_run=dry_run)

    @routes.post(
        "/budget/transfers",
        operation_id="transfer",
        summary="Move GPU-time from one leaf to another",
        response_model=Ordered,
        **needs(Right.CHANGE_BUDGETS),
    )
    def transfer(caller: Asking, body: TransferBody, key: Key, dry_run: DryRun = False) -> dict[str, Any]:  # noqa: FBT002
        """Transfer GPU-time; refused when the giver has not that much left."""
        caller.cluster(body.cluster)
        caller.require_account(body.account)  # what one's own node has may be divided, and not added to
        caller.require_below(body.to)
        command = Transferred(
            account=body.account, to=body.to, cluster=body.cluster, period=body.period, gpu_ms=body.gpu_ms,
            reason=body.reason, by=caller.name,
        )  # fmt: skip
        return _given(context, command, key, dry_run=dry_run)

    return routes


def _given(context: Context, command: Granted | Transferred, key: str, *, dry_run: bool) -> dict[str, Any]:
    """Carry an order out, or only check it; what was booked before under its key is not checked anew."""
    if dry_run:
        with reading(context.engine) as reader:
            calendar = queries.calendar(reader, context.default_calendar)
            check(reader, command, now_s=context.now_s(), calendar=calendar)
        return {"applied": False, "repeated": False, "seq": None, "key": key}

    done = carry_out(
        context.engine, command, key=key, clock=context.clock, default_calendar=context.default_calendar
    )
    return {"applied": True, "repeated": done.repeated, "seq": done.seq, "key": key}
