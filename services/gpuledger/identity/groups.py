"""The file that says what groups of an identity provider mean here: each a role and a scope."""

from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

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

    @property
    def scope(self) -> Scope:
        """Where they may do it."""
        return Scope(self.subtree, tuple(sorted(set(self.clusters))))


class Groups(_Model):
    """The file as a whole.

    Args:
        claim: The claim of an identity token that lists groups.
        name: The claim that orders and logs name people by.
        groups: Group -> what it means. Who is in several has what the first of them in the file means.
    """

    claim: _Text = "groups"
    name: _Text = "preferred_username"
    groups: dict[_Text, Meaning] = Field(min_length=1)

    def meaning(self, claims: dict[str, Any]) -> Meaning | None:
        """Return what the first group of the file means that somebody is in; None for who is in none."""
        said = claims.get(self.claim)
        own = {one for one in (said if isinstance(said, list) else [said]) if isinstance(one, str)}
        return next((meaning for group, meaning in self.groups.items() if group in own), None)


def read_groups(path: Path) -> Groups:
    """Read the file.

    Raises:
        Refused: When it cannot be read, holds an unknown key or role, or a scope that a role is not safe with.
    """
    try:
        found = Groups.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise Refused(f"{path}: cannot be read: {error}", hint="see docs/api.md for an example") from error
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, e['loc'])) or 'the file'}: {e['msg']}" for e in error.errors()
        )
        raise Refused(f"{path}: {faults}", hint="see docs/api.md for an example") from error
    for group, meaning in found.groups.items():
        try:
            check_scope(meaning.role, meaning.scope)
        except Refused as error:
            raise Refused(f"{path}: group {group}: {error.message}", hint=error.hint) from error
    return found
