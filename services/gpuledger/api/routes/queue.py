"""Who waits on a cluster, in the order of the newest cycle, with the ratios that it ordered them by."""

from typing import Any

from fastapi import APIRouter
from pydantic import Field

from gpuledger.api import paging, parameters
from gpuledger.api.access import Asking, needs
from gpuledger.api.answers import Answer, AsOf
from gpuledger.api.context import Context
from gpuledger.database.engine import reading
from gpuledger.identity.roles import Right
from gpuledger.kernel.accounts import is_within
from gpuledger.kernel.clock import instant, iso
from gpuledger.ledger import queries
from gpuledger.ledger.as_of import vector_of
from gpuledger.policy.queue import Queued, queue


class RatioAnswer(Answer):
    """How far an account has used what it was entitled to."""

    account: str
    ratio: str | None = Field(description="Used / entitled in the look-back; null without entitlement.")


class QueuedAnswer(Answer):
    """A workload that waits."""

    position: int | None = Field(
        description="Its place among all who wait, from 1; null where no cycle has ordered it yet."
    )
    workload: str
    account: str
    gpus_milli: int
    gpu_model: str | None
    minimum_runtime_s: int
    priority: int = Field(description="Its order inside its account.")
    submitted_at: str
    waits_since: str
    action: str | None = Field(description="start or wait, as decided; null where nothing was.")
    reason: str | None = Field(description="Why, in a sentence.")
    ratios: list[RatioAnswer] = Field(
        description="What the order is made of, from the top of the tree down to the account: where the paths of two"
        " part, the lower ratio comes first."
    )


class QueueAnswer(Answer):
    """Who waits on a cluster, in order."""

    cluster: str
    cycle: str | None = Field(description="What ordered them; null before the policy ran.")
    decided_at: str | None
    rows: list[QueuedAnswer]
    reason: str | None = Field(description="Why nobody has a place.")
    next: int | None = Field(description="`after` of the next page; null on the last.")
    as_of: str = AsOf


def router(context: Context) -> APIRouter:
    """Return the path, reading through the context's database."""
    routes = APIRouter(prefix="/v1", tags=["policy"])

    @routes.get(
        "/queue",
        operation_id="getQueue",
        summary="Who waits, in order, with the ratios of the order",
        response_model=QueueAnswer,
        **needs(Right.READ_WORK),
    )
    def get_queue(
        caller: Asking,
        cluster: parameters.RequiredCluster,
        account: parameters.Account = None,
        as_of: parameters.AsOf = None,
        limit: paging.Limit = paging.PAGE_MAX,
        after: paging.After = 0,
    ) -> dict[str, Any]:
        """List waiting work by its place; `account` keeps what belongs to it and below, places stay those of all.

        Pages are of one cycle: start again where `cycle` has changed.
        """
        caller.cluster(cluster)
        within = caller.account(account)
        with reading(context.engine) as reader:
            queries.require_cluster(reader, cluster)
            if account is not None:
                queries.require_account(reader, account)
            believed = context.believed(reader, as_of)
            found = queue(reader, cluster, now_s=context.now_or(believed), vector=vector_of(reader, believed))
        kept = [row for row in found.rows if within is None or is_within(row.asked.account, within)]
        rows, following = paging.page(kept, after, limit)
        return {
            "cluster": cluster,
            "cycle": found.cycle,
            "decided_at": None if found.at_s is None else iso(instant(found.at_s)),
            "rows": [_row(row) for row in rows],
            "reason": found.reason,
            "next": following,
            "as_of": context.as_of(believed),
        }

    return routes


def _row(row: Queued) -> dict[str, Any]:
    asked = row.asked._asdict()
    submitted_s, eligible_s = asked.pop("submitted_s"), asked.pop("eligible_s")
    return {
        "position": row.position,
        **asked,
        "submitted_at": iso(instant(submitted_s)),
        "waits_since": iso(instant(eligible_s)),
        "action": row.decision and row.decision["action"],
        "reason": row.decision and row.decision["reason"],
        "ratios": [{"account": account, "ratio": ratio} for account, ratio in row.ratios],
    }
