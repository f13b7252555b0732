"""Who the API takes the caller for, and who else may ask."""

from typing import Any

from fastapi import APIRouter
from pydantic import Field

from gpuledger.api.access import Asking, needs
from gpuledger.api.answers import Answer, AsOf
from gpuledger.api.context import Context
from gpuledger.api.outcomes import WhoAmI
from gpuledger.database.engine import reading
from gpuledger.identity import store
from gpuledger.identity.caller import Caller
from gpuledger.identity.roles import RIGHTS, Right
from gpuledger.identity.store import Token


class TokenRow(Answer):
    """Who may ask the API, and how far they reach; the secret is kept nowhere."""

    id: str
    name: str
    role: str
    subtree: str | None = Field(description="An account and all below it; null for every account.")
    clusters: list[str] = Field(description="Empty for every cluster.")
    created_at: str
    created_by: str
    expires_at: str
    replaces: str | None = Field(description="The token that it was made for.")
    revoked_at: str | None
    revoked_by: str | None
    last_used_at: str | None = Field(description="To the minute; null when never.")
    good: bool = Field(description="Whether it opens the API by now.")


class Tokens(Answer):
    """Tokens that there are or were, the oldest first."""

    tokens: list[TokenRow]
    as_of: str = AsOf


def router(context: Context) -> APIRouter:
    """Return the paths, reading through the context's database."""
    routes = APIRouter(prefix="/v1", tags=["identity"])

    @routes.get(
        "/me",
        operation_id="getCaller",
        summary="Who the token stands for, and what it reaches",
        response_model=WhoAmI,
        **needs(Right.READ_CLUSTERS),
    )
    def get_caller(caller: Asking) -> dict[str, Any]:
        """Return the caller's name, role, rights and scope."""
        return {
            "name": caller.name,
            "role": caller.role.value,
            "rights": sorted(right.value for right in RIGHTS[caller.role]),
            "subtree": caller.scope.subtree,
            "clusters": list(caller.scope.clusters),
            "token": caller.token,
        }

    @routes.get(
        "/tokens",
        operation_id="listTokens",
        summary="Who may ask the API",
        response_model=Tokens,
        **needs(Right.READ_TOKENS),
    )
    def list_tokens(caller: Asking) -> dict[str, Any]:
        """List every token that there is or was, of those that reach no further than the caller."""
        now = context.clock.now()
        with reading(context.engine) as reader:
            found = [token for token in store.every(reader) if _is_within(token, caller)]
        told = [{**token.as_json(), "good": token.is_good(now)} for token in found]
        return {"tokens": told, "as_of": context.as_of()}

    return routes


def _is_within(token: Token, caller: Caller) -> bool:
    own, its = caller.scope, token.scope
    reaches_account = own.subtree is None or (its.subtree is not None and own.holds(its.subtree))
    return reaches_account and (
        not own.clusters or (bool(its.clusters) and {*its.clusters} <= {*own.clusters})
    )
