"""Accounts: nodes of the program tree, named by ``/``-separated lower-case paths."""

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import quote

from gpuledger.kernel.errors import Refused

SEPARATOR = "/"
BOOK_POT_ACCOUNT = "~"
"""The account of the pots that belong to a whole book (``issue``, ``free``)."""

OWN = "~own"
"""The virtual child that holds work owned by an inner node."""

UNMAPPED_ROOT = "unmapped"
"""The root of what nothing says an owner of: visible, and granted nothing (law 7)."""

_SAFE = "~-_."


def escape_part(name: str) -> str:
    """Return a foreign team, user or queue name as one part of an account path.

    Letters are lower-cased, everything outside ``a-z 0-9 ~ - _ .`` is %-escaped (UTF-8).

    Raises:
        Refused: When the name is empty.
    """
    if not name:
        raise Refused("an account name is empty", hint="give the team a name, or map it to an account")
    return quote(name.lower(), safe=_SAFE)


def clash_suffix(name: str) -> str:
    """Return the suffix that keeps apart two foreign names that differ only by case."""
    return "~" + hashlib.sha256(name.encode()).hexdigest()[:8]


def join(*parts: str) -> str:
    """Return the path of the parts, from the root down."""
    return SEPARATOR.join(parts)


def parent(path: str) -> str | None:
    """Return the path of the parent, or None for a root."""
    head, separator, _ = path.rpartition(SEPARATOR)
    return head if separator else None


def own_path(account: str) -> str:
    """Return the virtual child that holds the work owned by an inner node."""
    return account + SEPARATOR + OWN


def owner_of(path: str) -> str:
    """Return the account whose own work and budget a leaf is: its parent for a ``~own`` child, else itself."""
    return path.removesuffix(SEPARATOR + OWN)


def share_unless_set(path: str) -> int:
    """Return the share of an account that nobody set one for: 1, and 0 of the virtual child ``~own``."""
    return int(owner_of(path) == path)


def lineage(path: str) -> Iterator[str]:
    """Yield the path's root, then each node below it, and last the path itself."""
    parts = path.split(SEPARATOR)
    for depth in range(1, len(parts) + 1):
        yield SEPARATOR.join(parts[:depth])


@lru_cache(maxsize=4096)
def parting(path: str, other: str) -> tuple[str, str]:
    """Return the nodes of two leaves' paths where these part: siblings, or two roots.

    Args:
        path: A leaf.
        other: Another leaf of the same tree.
    """
    return next((a, b) for a, b in zip(lineage(path), lineage(other), strict=False) if a != b)


def is_within(path: str, account: str) -> bool:
    """Say whether a path is an account's, or lies below it."""
    return path == account or path.startswith(account + SEPARATOR)


@lru_cache(maxsize=4096)
def check_path(path: str) -> str:
    """Return the path when it is a well-formed account path.

    Raises:
        Refused: When a part is empty or has a character outside ``a-z 0-9 ~ - _ . %``.
    """
    for part in path.split(SEPARATOR):
        if not part or part != quote(part, safe=_SAFE + "%") or part != _lower_outside_escapes(part):
            raise Refused(
                f"account path {path!r} is not well formed at {part!r}",
                hint="use lower-case letters, digits and ~ - _ . between slashes; escape the rest as %XX",
            )
    return path


def _lower_outside_escapes(part: str) -> str:
    head, *rest = part.split("%")
    return "%".join([head.lower(), *(piece[:2] + piece[2:].lower() for piece in rest)])
