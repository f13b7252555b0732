"""Who the API takes the caller for."""

from typing import Any

from fastapi import APIRouter

from gpuledger.api.access import Asking, needs
from gpuledger.api.outcomes import WhoAmI
from gpuledger.identity.roles import RIGHTS, Right


def router() -> APIRouter:
    """Return the path."""
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

    return routes
