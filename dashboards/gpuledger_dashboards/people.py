"""The people of a demo, as whom its pages may be looked at. Pure but for the one file that it reads."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from gpuledger.client.outcomes import WhoAmI


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody to look at the pages as.

    Args:
        key: How an address names them.
        name: Their name.
        about: Who they are.
        attempt: What to try first.
        token: What signs them in.
    """

    key: str
    name: str
    about: str
    attempt: str
    token: str


def read(path: Path | None) -> list[Person]:
    """Return the people of a file; none without a file, or where it is not one of people."""
    if path is None:
        return []
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Person])
    except (OSError, msgspec.MsgspecError):
        return []


def named(found: Iterable[Person], key: str | None) -> Person | None:
    """Return who an address names, if it names anybody."""
    return next((person for person in found if person.key == key), None)


def scope(me: WhoAmI) -> str:
    """Return in words who somebody is to the ledger, and how far they reach."""
    where = me.subtree or "every account"
    clusters = ", ".join(me.clusters) or "every cluster"
    return f"{me.role} of {where} on {clusters}"
