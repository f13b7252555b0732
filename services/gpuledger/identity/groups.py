"""What groups of an identity provider mean here: each a role and a scope, as a file says."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gpuledger.identity.caller import Scope, check_scope
from gpuledger.identity.roles import Role
from gpuledger.kernel.errors import Refused

_Text = Annotated[str, Field(min_length=1, max_length=200)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Meaning(_Model):
    """What a group means here.

    Args:
        role: What its members may do.
        subtree: An account and all below it; every account unless given.
        clusters: Every cluster unless given.
    """

    role: Role
    subtree: _Text | None = None
    clusters: tuple[_Text, ...] = ()

    @model_validator(mode="after")
    def _is_safe(self) -> Self:
        """Refuse a scope that the role is not safe with."""
        try:
            check_scope(self.role, self.scope)
        except Refused as error:
            raise ValueError(f"{error.message}; {error.hint}") from error
        return self

    @property
    def scope(self) -> Scope:
        """Where they may do it."""
        return Scope(self.subtree, tuple(sorted(set(self.clusters))))


class Groups(_Model):
    """The file as a whole.

    Args:
        claim: The claim of an identity token that lists groups.
        name: The claim that orders and logs know people by. The subject never changes hands, and nobody chooses their
            own: who may not approve what they proposed is told apart by it.
        groups: Group -> what it means. Who is in several has what the first of them in the file means.
    """

    claim: _Text = "groups"
    name: _Text = "sub"
    groups: dict[_Text, Meaning] = Field(min_length=1)

    def meaning(self, claims: dict[str, Any]) -> Meaning | None:
        """Return what the first group of the file means that somebody is in; None for who is in none."""
        said = claims.get(self.claim)
        own = {one for one in (said if isinstance(said, list) else [said]) if isinstance(one, str)}
        return next((meaning for group, meaning in self.groups.items() if group in own), None)
