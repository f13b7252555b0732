"""Division and order of a tree that the caller wrote: the policy's own arithmetic, without a ledger."""

from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter
from pydantic import Field

from gpuledger.api.access import needs
from gpuledger.api.answers import Answer
from gpuledger.api.bodies import Body, Name
from gpuledger.identity.roles import Right
from gpuledger.kernel.accounts import SEPARATOR, lineage
from gpuledger.kernel.errors import Refused
from gpuledger.policy.calculator import divide_by_hand
from gpuledger.policy.state import AccountState
from gpuledger.policy.words import gpus_text

ACCOUNTS_MAX = 500
NODES_MAX = 2000
"""With those above the accounts that are listed: few accounts far down are many nodes, and the answer names each."""

DEPTH_MAX = 32
MILLI_MAX = 10**9
GPU_MS_MAX = 2**53


class NodeBody(Body):
    """An account of the tree; those above it that are not listed have share 1."""

    account: Name
    share: int = Field(default=1, ge=0, le=10**9, description="Weight among its siblings.")
    demand_milli: int = Field(
        default=0, ge=0, le=MILLI_MAX, description="Milli-GPU of funded work that runs or could start."
    )
    limit_milli: int | None = Field(
        default=None, ge=0, le=MILLI_MAX, description="The most that it is issued."
    )
    used_gpu_ms: int = Field(default=0, ge=0, le=GPU_MS_MAX, description="What it used of the window.")


class TreeBody(Body):
    """What is to be divided among whom."""

    supply_milli: int = Field(ge=0, le=MILLI_MAX, description="Milli-GPU there are to divide.")
    window_gpu_ms: int | None = Field(
        default=None,
        ge=0,
        le=GPU_MS_MAX,
        description="Capacity of the look-back window; the supply through it unless given.",
    )
    accounts: list[NodeBody] = Field(min_length=1, max_length=ACCOUNTS_MAX)


class Divided(Answer):
    """What each is issued, and who is served next."""

    issued: dict[str, str] = Field(description="Account -> GPUs, inner accounts too.")
    order: list[str] = Field(description="The leaves, next to be served first.")
    idle: str = Field(description="GPUs that nobody asks for.")


def router() -> APIRouter:
    """Return the path; it reads nothing."""
    routes = APIRouter(prefix="/v1", tags=["policy"])

    @routes.post(
        "/fairshare",
        operation_id="divide",
        summary="Divide GPUs among the accounts of a tree",
        response_model=Divided,
        **needs(Right.READ_CLUSTERS),
    )
    def divide(body: TreeBody) -> dict[str, Any]:
        """Divide a supply among accounts, and order them, as the policy does; nothing is read and nothing kept.

        The answer has the keys of `gpuledger fairshare FILE --json`.
        """
        given = {node.account: node for node in body.accounts}
        _check_size(given)
        names = dict.fromkeys(above for node in body.accounts for above in lineage(node.account))
        nodes = [given.get(name) or NodeBody(account=name) for name in names]
        # A name that stands twice is for the policy to refuse.
        twice = [node for node in body.accounts if given[node.account] is not node]
        division = divide_by_hand(
            [
                AccountState(
                    account=node.account, share=node.share, demand_milli=node.demand_milli,
                    limit_milli=node.limit_milli, used_gpu_ms=node.used_gpu_ms,
                )
                for node in (*nodes, *twice)
            ],
            supply_milli=body.supply_milli,
            window_gpu_ms=body.window_gpu_ms,
        )  # fmt: skip
        issued = division.issue.issued_milli
        return {
            "issued": {account: gpus_text(milli) for account, milli in issued.items()},
            "order": list(division.order),
            "idle": gpus_text(division.issue.idle_milli),
        }

    return routes


def _check_size(accounts: Iterable[str]) -> None:
    """Refuse a tree that one request would be long about.

    Raises:
        Refused: When it is too deep, or has too many nodes.
    """
    nodes = set[str]()
    for account in accounts:
        if account.count(SEPARATOR) >= DEPTH_MAX:
            raise Refused(
                f"an account lies deeper than {DEPTH_MAX}", hint="leave out the nodes that divide nothing"
            )
        nodes.update(lineage(account))
        if len(nodes) > NODES_MAX:
            raise Refused(
                f"the tree has more than {NODES_MAX} nodes, with those above the accounts that are listed",
                hint="divide a part of it, or use gpuledger fairshare FILE, which takes any tree",
            )
