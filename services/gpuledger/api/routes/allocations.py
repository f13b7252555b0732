"""The newest allocations of a cluster, and what they order."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from gpuledger.api import parameters
from gpuledger.api.access import Asking, needs
from gpuledger.api.answers import Answer, AsOf, Directives
from gpuledger.api.context import Context
from gpuledger.api.newer import WAIT_MAX_S, Newer, of_ledger
from gpuledger.database.engine import Reader, reading
from gpuledger.identity.caller import Caller
from gpuledger.identity.roles import Right
from gpuledger.kernel.clock import instant, iso
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger import cycles, queries
from gpuledger.ledger.as_of import seq_of, vector_of
from gpuledger.ledger.ownership import within
from gpuledger.policy.directives import directives
from gpuledger.policy.kept import as_told
from gpuledger.policy.orders import STALE_AFTER_S

WAITING_MAX = 1000
"""Of a longer queue the answer holds starts and preemptions only; ``gpuledger why`` tells of each workload."""

After = Annotated[int | None, Query(description="The cursor of the answer before.", ge=0, le=2**53)]
StaleAfter = Annotated[
    int, Query(description="Seconds; a cycle that is older orders nothing.", ge=1, le=366 * 86_400)
]
Wait = Annotated[
    int, Query(description="Seconds to wait for something newer where there is nothing.", ge=0, le=WAIT_MAX_S)
]


class Cycle(Answer):
    """The newest cycle of the policy for a cluster."""

    cluster: str
    cursor: int = Field(
        description="Stands for all up to here; null below: nothing is newer than what was sent."
    )
    cycle: str | None
    supply_gpus: int | str | None = Field(description="Whole GPUs, or a decimal string.")
    allocations: list[dict[str, Any]]
    decisions: list[dict[str, Any]]
    reservations: list[dict[str, Any]] = Field(
        default=[], description="GPUs that are kept for waiting workloads, by host in milli-GPU."
    )
    amendments: list[str] = Field(
        default=[],
        description="Ids of what amended the cycle since; decisions and reservations are those of by now.",
    )
    as_of: str = AsOf


def router(context: Context) -> APIRouter:
    """Return the paths, reading through the context's database."""
    routes = APIRouter(prefix="/v1", tags=["ledger"])
    newer = of_ledger(context)
    _add_allocations(routes, context, newer)
    _add_directives(routes, context, newer)
    return routes


def _add_allocations(routes: APIRouter, context: Context, newer: Newer) -> None:
    @routes.get(
        "/allocations/current",
        operation_id="getCurrentAllocations",
        summary="The newest policy cycle of a cluster",
        response_model=Cycle,
        **needs(Right.READ_WORK),
    )
    async def get_current_allocations(
        cluster: parameters.RequiredCluster,
        caller: Asking,
        after: After = None,
        wait_s: Wait = 0,
        as_of: parameters.AsOf = None,
    ) -> dict[str, Any]:
        """Return what was issued, and each decision with its reason; those to wait only while few wait.

        With the `cursor` of the last answer, only what is newer: `cycle` is null where nothing is, and with `wait_s`
        that is waited for, for so long at most.
        """
        caller.cluster(cluster)

        async def ask() -> dict[str, Any]:
            return await run_in_threadpool(_allocations, context, caller, cluster, after, as_of)

        # Without a cursor everything is news, and what the books said at an earlier time does not change.
        patience_s = wait_s if as_of is None and after is not None else 0
        return await newer.answered(cluster, patience_s, ask, lambda told: told["cycle"] is not None)


def _add_directives(routes: APIRouter, context: Context, newer: Newer) -> None:
    @routes.get(
        "/directives/current",
        operation_id="getCurrentDirectives",
        summary="What the newest policy cycle of a cluster orders",
        response_model=Directives,
        **needs(Right.READ_ORDERS),
    )
    async def get_current_directives(
        cluster: parameters.RequiredCluster,
        caller: Asking,
        after: After = None,
        stale_after_s: StaleAfter = STALE_AFTER_S,
        wait_s: Wait = 0,
        as_of: parameters.AsOf = None,
    ) -> dict[str, Any]:
        """Return what to start where and what has to leave; with the cursor of the last answer, only what is newer.

        With `wait_s` an answer that would hold nothing waits until the policy has spoken, for so long at most.
        """
        caller.cluster(cluster)

        async def ask() -> dict[str, Any]:
            return await run_in_threadpool(_directives, context, cluster, after, stale_after_s, as_of)

        # What the books said at an earlier time does not change.
        patience_s = wait_s if as_of is None else 0
        return await newer.answered(cluster, patience_s, ask, lambda told: told["cycle"] is not None)


def _allocations(
    context: Context, caller: Caller, cluster: str, after: int | None, as_of: str | None
) -> dict[str, Any]:
    with reading(context.engine) as reader:
        queries.require_cluster(reader, cluster)
        believed = context.believed(reader, as_of)
        at_s, seq = context.now_or(believed), seq_of(vector_of(reader, believed), cluster)
        word = cycles.newest_word(reader, cluster, at_s=at_s, seq=seq)
        if word is None:
            raise NotFound(
                f"the policy has not run for cluster {cluster!r}",
                hint=f"gpuledger cycle --cluster {cluster}",
            )
        seen = {"cursor": word.newest.seq, "as_of": context.as_of(believed)}
        if word.newest.seq == after:
            nothing: dict[str, Any] = {"cycle": None, "supply_gpus": None, "allocations": [], "decisions": []}
            return {"cluster": cluster, **nothing, **seen}
        found = as_told(reader, cluster, word, waiting_max=WAITING_MAX)
        return {**_cut(reader, found, caller), **seen}


def _directives(
    context: Context, cluster: str, after: int | None, stale_after_s: int, as_of: str | None
) -> dict[str, Any]:
    with reading(context.engine) as reader:
        queries.require_cluster(reader, cluster)
        believed = context.believed(reader, as_of)
        found = directives(
            reader, cluster, now_s=context.now_or(believed), after=after, stale_after_s=stale_after_s,
            vector=vector_of(reader, believed),
        )  # fmt: skip
    if found is None:
        none: dict[str, Any] = {"cycle": None, "decided_at": None, "stale": None}
        orders: dict[str, Any] = {"starts": [], "preemptions": [], "protected": []}
        return {"cluster": cluster, "cursor": after, **none, **orders, "as_of": context.as_of(believed)}
    told = found._asdict()
    decided_at = iso(instant(told.pop("at_s")))
    return {"cluster": cluster, **told, "decided_at": decided_at, "as_of": context.as_of(believed)}


def _cut(reader: Reader, found: dict[str, Any], caller: Caller) -> dict[str, Any]:
    """Return a cycle with what concerns the caller's subtree alone: its accounts, and the work that is theirs."""
    subtree = caller.scope.subtree
    if subtree is None:
        return found
    told = found["decisions"] + found["reservations"]
    own = within(reader, found["cluster"], {row["workload"] for row in told}, subtree)
    cut = {
        name: [row for row in found[name] if row["workload"] in own] for name in ("decisions", "reservations")
    }
    return {**found, **cut, "allocations": caller.visible(found["allocations"])}
