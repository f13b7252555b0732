"""Proposals and divisions that are tried out, each question and each step described once."""

from urllib.parse import quote

import msgspec

from gpuledger.client import outcomes, plans
from gpuledger.client.asking import Ask, Moment, get, post


def divide(tree: plans.Tree) -> Ask[plans.Divided]:
    """Divide GPUs among the accounts of a tree that was written by hand; nothing is kept.

    Raises:
        Refused: When an account stands twice or its name cannot be one.
    """
    return post(plans.Divided, "/v1/fairshare", msgspec.to_builtins(tree))


def proposals(
    *,
    state: str | None = None,
    cluster: str | None = None,
    account: str | None = None,
    after: int | None = None,
    as_of: Moment | None = None,
) -> Ask[plans.Proposals]:
    """List proposals, the newest first; ``account`` keeps those that name it or what is below it."""
    return get(
        plans.Proposals,
        "/v1/proposals",
        state=state,
        cluster=cluster,
        account=account,
        after=after,
        as_of=as_of,
    )


def proposal(name: str, *, as_of: Moment | None = None) -> Ask[plans.OneProposal]:
    """Return a proposal with what was said of it.

    Raises:
        NotFound: When there is none that the caller sees.
    """
    return get(plans.OneProposal, f"/v1/proposals/{quote(name)}", as_of=as_of)


def propose(wish: plans.Wish, *, key: str | None = None, dry_run: bool = False) -> Ask[plans.Made]:
    """Ask for changes; with ``dry_run`` only tell what they would change.

    Raises:
        Forbidden: When an account lies outside the token's reach.
        Refused: When it could not be approved as the books stand.
    """
    return post(plans.Made, "/v1/proposals", msgspec.to_builtins(wish), key=key, dry_run=dry_run)


def say(proposal: str, step: plans.Step, reason: str, *, key: str | None = None) -> Ask[outcomes.Ordered]:
    """Comment on a proposal, approve it, reject it, or take it back.

    Raises:
        Conflict: When it was decided already.
        Forbidden: When it is not for the caller to decide.
    """
    path = f"/v1/proposals/{quote(proposal)}/{step.value}"
    return post(outcomes.Ordered, path, {"reason": reason}, key=key)
