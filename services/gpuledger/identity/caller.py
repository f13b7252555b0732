"""Who asks, and what of the ledger they reach. Pure: no answer depends on what exists."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from gpuledger.identity.roles import NEEDS_CLUSTER, NEEDS_SUBTREE, RIGHTS, Right, Role
from gpuledger.kernel.accounts import check_path, is_within, own_path
from gpuledger.kernel.errors import Forbidden, Refused

Row = TypeVar("Row", bound=Mapping[str, Any])


@dataclass(frozen=True, slots=True)
class Scope:
    """How far somebody reaches.

    Args:
        subtree: An account and all below it; None for every account.
        clusters: Names of clusters; none for every cluster.
    """

    subtree: str | None = None
    clusters: tuple[str, ...] = ()

    def holds(self, account: str) -> bool:
        """Say whether an account is the subtree's node or lies below it."""
        return self.subtree is None or is_within(account, self.subtree)

    def is_below(self, account: str) -> bool:
        """Say whether an account lies below the subtree's node; every account lies below none.

        What the node owns itself (``~own``) is written as a child, and is the node all the same.
        """
        if self.subtree is None:
            return True
        return (
            account != self.subtree
            and self.holds(account)
            and not Scope(own_path(self.subtree)).holds(account)
        )


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody whose identity was proven.

    Args:
        name: How orders and logs name them.
        role: What they may do.
        scope: Where they may do it.
        token: The token's id; None for who was let in without one.
    """

    name: str
    role: Role
    scope: Scope = Scope()
    token: str | None = None

    @property
    def is_everywhere(self) -> bool:
        """Say whether every account and every cluster is theirs to see."""
        return self.scope == Scope()

    def require(self, right: Right) -> None:
        """Refuse who has not got a right.

        Raises:
            Forbidden: Naming those who have it.
        """
        if right not in RIGHTS[self.role]:
            able = ", ".join(role for role, rights in RIGHTS.items() if right in rights)
            raise Forbidden(
                f"{self.name} is {_article(self.role)} {self.role}, whom {right} is not given to",
                hint=f"use a token of one of these roles: {able}",
            )

    def account(self, asked: str | None) -> str | None:
        """Return the account that an answer is cut to: the one asked for, the caller's own subtree unless given.

        Raises:
            Forbidden: As ``require_account``.
        """
        if asked is None:
            return self.scope.subtree
        self.require_account(asked)
        return asked

    def require_account(self, account: str) -> None:
        """Refuse an account outside the caller's subtree.

        Raises:
            Forbidden: Whether or not there is such an account.
        """
        if not self.scope.holds(account):
            raise Forbidden(
                f"{self.name} sees {self.scope.subtree} and what is below it, and {account!r} is not",
                hint="ask for an account inside it, or use a token of another scope",
            )

    def require_below(self, account: str) -> None:
        """Refuse a change outside what lies below the caller's own node: nobody grants to themselves.

        Raises:
            Forbidden: Likewise.
        """
        if not self.scope.is_below(account):
            raise Forbidden(
                f"{self.name} changes what lies below {self.scope.subtree}, and {account!r} does not",
                hint="ask whoever is responsible for the account above it",
            )

    def cluster(self, asked: str | None) -> str | None:
        """Return the cluster that an answer is cut to: the one asked for, the caller's only one unless given.

        Raises:
            Forbidden: When it is none of the caller's, whether or not there is such a cluster.
            Refused: When none is asked for, and the caller has several but not all.
        """
        own = self.scope.clusters
        if not own or asked in own:
            return asked
        if asked is not None:
            raise Forbidden(
                f"{self.name} reaches {', '.join(own)}, and {asked!r} is none of them",
                hint="ask for one of these clusters, or use a token of another scope",
            )
        if len(own) > 1:
            raise Refused(f"{self.name} reaches {len(own)} clusters", hint=f"name one: {', '.join(own)}")
        return own[0]

    def reaches(self, cluster: str) -> bool:
        """Say whether a cluster is one of the caller's."""
        return not self.scope.clusters or cluster in self.scope.clusters

    def visible(self, rows: Iterable[Row]) -> list[Row]:
        """Return the rows whose ``account`` lies within the caller's subtree."""
        return [row for row in rows if self.scope.holds(row["account"])]


def check_scope(role: Role, scope: Scope) -> None:
    """Refuse a scope that a role is not safe with.

    Raises:
        Refused: When the role needs a subtree or a cluster and none is named, or a path is not well formed.
    """
    if scope.subtree is not None:
        check_path(scope.subtree)
    if role in NEEDS_SUBTREE and scope.subtree is None:
        raise Refused(
            f"a token of role {role} needs a subtree",
            hint="--subtree ACCOUNT; an admin reaches every account",
        )
    if role in NEEDS_CLUSTER and scope.subtree is not None:
        raise Refused(
            f"a token of role {role} has no subtree: it speaks of all the work of its clusters",
            hint="leave --subtree out",
        )
    if role in NEEDS_CLUSTER and not scope.clusters:
        raise Refused(
            f"a token of role {role} needs a cluster", hint="--cluster NAME; an admin reaches every cluster"
        )


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"
