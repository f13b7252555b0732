"""Changes of budgets that are proposed, discussed, and decided by somebody who may make them."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from fastapi import APIRouter, Path, Query

from gpuledger.api import paging, parameters
from gpuledger.api.access import Asking, needs
from gpuledger.api.bodies import DryRun, Key
from gpuledger.api.context import Context
from gpuledger.api.outcomes import Ordered
from gpuledger.api.proposals import Made, OneProposal, ProposalBody, Proposals, SayingBody
from gpuledger.database.engine import reading
from gpuledger.events import proposal
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.identity.caller import Caller
from gpuledger.identity.roles import Right
from gpuledger.kernel.accounts import is_within
from gpuledger.kernel.errors import Forbidden, NotFound
from gpuledger.ledger import proposals, queries
from gpuledger.ledger.proposal_effects import effect_of
from gpuledger.ledger.proposals import State
from gpuledger.ledger.proposing import carry_out, check_proposed, name_for

PAGE_MAX = 200

ProposalName = Annotated[
    str,
    Path(description="The name of a proposal.", pattern=r"^p-[0-9a-f]{12}$", examples=["p-3f9a1c0b2d4e"]),
]
StateOf = Annotated[State | None, Query(description="Only proposals that stand there.")]
Limit = Annotated[int, Query(description="How many at most.", ge=1, le=PAGE_MAX)]


_Step = proposal.Commented | proposal.Approved | proposal.Rejected | proposal.Withdrawn


class _Told(NamedTuple):
    """A step of a proposal as the document tells of it."""

    path: str
    operation: str
    summary: str
    description: str
    kind: type[_Step]
    right: Right


_STEPS = (
    _Told(
        "comments", "comment", "Say something about a proposal",
        "Keep a comment with the proposal, whatever has become of it.", proposal.Commented, Right.PROPOSE,
    ),
    _Told(
        "approval", "approve", "Approve a proposal, and make its changes",
        "Book the approval and all that the proposal asks for, together or not at all.", proposal.Approved,
        Right.CHANGE_BUDGETS,
    ),
    _Told(
        "rejection", "reject", "Turn a proposal down", "Turn a proposal down; it changes nothing.",
        proposal.Rejected, Right.CHANGE_BUDGETS,
    ),
    _Told(
        "withdrawal", "withdraw", "Take back a proposal of one's own", "Take back what one proposed oneself.",
        proposal.Withdrawn, Right.PROPOSE,
    ),
)  # fmt: skip

_DECIDES = (proposal.Approved, proposal.Rejected)


def router(context: Context, *, by_another: bool) -> APIRouter:
    """Return the paths.

    Args:
        context: The database and the present.
        by_another: Whether who proposed something may not approve it.
    """
    routes = APIRouter(prefix="/v1", tags=["proposals"])
    _add_reads(routes, context)
    _add_making(routes, context)
    _add_steps(routes, context, by_another=by_another)
    return routes


def _add_reads(routes: APIRouter, context: Context) -> None:
    @routes.get(
        "/proposals",
        operation_id="listProposals",
        summary="What is proposed, and what became of it",
        response_model=Proposals,
        **needs(Right.READ_PROPOSALS),
    )
    def list_proposals(
        caller: Asking,
        state: StateOf = None,
        cluster: parameters.Cluster = None,
        account: parameters.Account = None,
        as_of: parameters.AsOf = None,
        limit: Limit = PAGE_MAX,
        after: paging.After = 0,
    ) -> dict[str, Any]:
        """List the proposals whose accounts the caller sees all of, the newest first.

        `account` keeps those that name it or what is below it.
        """
        if account is not None:
            caller.require_account(account)
        if cluster is not None:
            caller.cluster(cluster)
        with reading(context.engine) as reader:
            believed = context.believed(reader, as_of)
            books = None if cluster is None else [cluster]
            found = proposals.proposals(reader, books, as_of=believed)
        kept = [
            made
            for made in found
            if _sees(caller, made)
            and state in (None, made.state)
            and (account is None or any(is_within(name, account) for name in made.accounts))
        ]
        now = believed or context.clock.now()
        rows, following = paging.page(kept, after, limit)
        return {
            "proposals": [_cut(caller, made.as_json(now)) for made in rows],
            "next": following,
            "as_of": context.as_of(believed),
        }

    @routes.get(
        "/proposals/{name}",
        operation_id="getProposal",
        summary="One proposal, with what was said of it",
        response_model=OneProposal,
        **needs(Right.READ_PROPOSALS),
    )
    def get_proposal(name: ProposalName, caller: Asking, as_of: parameters.AsOf = None) -> dict[str, Any]:
        """Return one proposal."""
        with reading(context.engine) as reader:
            believed = context.believed(reader, as_of)
            made = _found(caller, proposals.proposals(reader, as_of=believed), name)
        shown = _cut(caller, made.as_json(believed or context.clock.now()))
        return {**shown, "as_of": context.as_of(believed)}


def _add_making(routes: APIRouter, context: Context) -> None:
    @routes.post(
        "/proposals",
        operation_id="propose",
        summary="Ask for other shares, for GPU-time, or for a transfer",
        response_model=Made,
        **needs(Right.PROPOSE),
    )
    def propose(caller: Asking, body: ProposalBody, key: Key, dry_run: DryRun = False) -> dict[str, Any]:  # noqa: FBT002
        """Propose changes that are made together once somebody approves them who may make them."""
        book = body.cluster or ORG_BOOK
        asked = body.as_fact(name_for(book, key), caller.name)
        if body.cluster is not None:
            caller.cluster(body.cluster)
        simulated = asked.simulation.accounts if asked.simulation is not None else []
        for account in (*proposals.accounts_of(asked), *(said.account for said in simulated)):
            caller.require_account(account)
        with reading(context.engine) as reader:
            calendar = queries.calendar(reader, context.default_calendar)
            queries.require_cluster(reader, body.cluster)
            if dry_run:
                check_proposed(reader, asked, now_s=context.now_s(), calendar=calendar)
                effect = effect_of(reader, asked, now_s=context.now_s(), calendar=calendar)
                said = _cut_effect(caller, msgspec.to_builtins(effect))
                return {
                    "applied": False, "repeated": False, "proposal": asked.proposal, "effect": said, "seq": None,
                    "key": key,
                }  # fmt: skip
        done = carry_out(
            context.engine, asked, key=key, clock=context.clock, default_calendar=context.default_calendar
        )
        with reading(context.engine) as reader:
            made = proposals.proposal_of(reader, asked.proposal)
        return {
            "applied": True,
            "repeated": done.repeated,
            "proposal": asked.proposal,
            "effect": _cut(caller, made.as_json(context.clock.now()))["effect"],
            "seq": done.seq,
            "key": key,
        }


def _add_steps(routes: APIRouter, context: Context, *, by_another: bool) -> None:
    for told in _STEPS:
        routes.add_api_route(
            f"/proposals/{{name}}/{told.path}",
            _stepping(context, told.kind, by_another=by_another),
            methods=["POST"],
            operation_id=told.operation,
            summary=told.summary,
            description=told.description,
            response_model=Ordered,
            **needs(told.right),
        )


def _stepping(context: Context, kind: type[_Step], *, by_another: bool) -> Callable[..., dict[str, Any]]:
    """Return the function of a path that takes a step of a proposal."""

    def step(name: ProposalName, caller: Asking, body: SayingBody, key: Key) -> dict[str, Any]:
        with reading(context.engine) as reader:
            made = _found(caller, proposals.proposals(reader), name)
        if kind in _DECIDES:
            _require_authority(caller, made.asked)
        said = kind(proposal=name, cluster=made.asked.cluster, by=caller.name, reason=body.reason)
        done = carry_out(
            context.engine, said, key=key, clock=context.clock, default_calendar=context.default_calendar,
            by_another=by_another,
        )  # fmt: skip
        return {"applied": True, "repeated": done.repeated, "seq": done.seq, "key": key}

    return step


def _found(caller: Caller, found: Sequence[proposals.Proposal], name: str) -> proposals.Proposal:
    for made in reversed(found):  # nothing later stands in for what has a name
        if made.asked.proposal == name and _sees(caller, made):
            return made
    raise NotFound(f"there is no proposal {name!r} that you see", hint="GET /v1/proposals lists them")


def _sees(caller: Caller, made: proposals.Proposal) -> bool:
    """Say whether all that a proposal names is the caller's to see."""
    cluster = made.asked.cluster
    return (cluster is None or caller.reaches(cluster)) and all(map(caller.scope.holds, made.accounts))


def _cut(caller: Caller, shown: dict[str, Any]) -> dict[str, Any]:
    """Leave out what a proposal would change for accounts and clusters that are not the caller's to see."""
    simulation = shown["simulation"]
    if simulation is not None:
        simulation = {**simulation, "accounts": caller.visible(simulation["accounts"])}
    effect = shown["effect"]
    return {**shown, "simulation": simulation, "effect": effect and _cut_effect(caller, effect)}


def _cut_effect(caller: Caller, effect: dict[str, Any]) -> dict[str, Any]:
    if "shares" not in effect:
        return effect
    reached = [row for row in effect["shares"] if caller.reaches(row["cluster"])]
    return {**effect, "shares": caller.visible(reached)}


def _require_authority(caller: Caller, asked: proposal.Proposed) -> None:
    """Refuse to decide what the caller could not order.

    Raises:
        Forbidden: When an account lies too high.
    """
    if asked.shares and caller.scope.clusters:
        raise Forbidden(
            f"{caller.name} reaches {', '.join(caller.scope.clusters)}, and shares hold on every cluster",
            hint="ask somebody whose token names no cluster",
        )
    for share in asked.shares:
        caller.require_below(share.account)
    for grant in asked.grants:
        caller.require_below(grant.account)
    for transfer in asked.transfers:
        caller.require_account(transfer.account)
        caller.require_below(transfer.to)
