"""One workload: its story, what was decided about it, why it waits."""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from gpuledger.api import parameters
from gpuledger.api.access import Asking, needs
from gpuledger.api.answers import WorkloadStory
from gpuledger.api.context import Context
from gpuledger.database.engine import reading
from gpuledger.identity.roles import Right
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger import queries
from gpuledger.policy.telling import lines_of
from gpuledger.policy.why import why

WorkloadPath = Annotated[
    str,
    Path(
        description="The workload's id, as its source writes it; slashes as they are.",
        max_length=1000,
        pattern=parameters.PRINTABLE,
        examples=["8851"],
    ),
]
WhatIf = Annotated[
    bool, Query(description="Look for what would let it start now; runs cycles, so it takes longer.")
]


def router(context: Context) -> APIRouter:
    """Return the paths, reading through the context's database."""
    routes = APIRouter(prefix="/v1", tags=["ledger"])

    @routes.get(
        "/workloads/{workload:path}",
        operation_id="getWorkload",
        summary="A workload's story, and why it waits",
        response_model=WorkloadStory,
        **needs(Right.READ_WORK),
    )
    def get_workload(
        workload: WorkloadPath,
        caller: Asking,
        cluster: parameters.Cluster = None,
        what_if: WhatIf = False,  # noqa: FBT002 - a query parameter
        as_of: parameters.AsOf = None,
    ) -> dict[str, Any]:
        """Tell what happened to a workload and why, what it cost, and while it waits, what for."""
        cluster = caller.cluster(cluster)
        with reading(context.engine) as reader:
            queries.require_cluster(reader, cluster)
            believed = context.believed(reader, as_of)
            try:
                found = why(
                    reader, workload, cluster=cluster, at_s=context.now_or(believed), as_of=believed, what_if=what_if
                )  # fmt: skip
            except NotFound:
                if caller.is_everywhere:
                    raise
                raise _unknown(workload) from None
        if not any(caller.scope.holds(account) for account in found.story.payers):
            raise _unknown(workload)
        is_elsewhere = not caller.scope.holds(found.story.account)
        if is_elsewhere:
            # It was moved away: what is decided about it by now is told to who pays now.
            found = replace(found, decided=None, ahead=None)
        lines = lines_of(found, what_if=what_if, is_decision_kept=is_elsewhere)
        return {**found.as_json(), "lines": lines, "as_of": context.as_of(believed)}

    return routes


def _unknown(workload: str) -> NotFound:
    """Return the same refusal for what there is not and for what is somebody else's."""
    return NotFound(
        f"no workload {workload!r} is known to you", hint="ids are those of the source, as it writes them"
    )
