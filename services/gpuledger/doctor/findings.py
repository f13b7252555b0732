"""What was found at one link: how it stands, in a sentence, and what mends it. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Level(StrEnum):
    """How a link stands."""

    FINE = "fine"
    NOTE = "note"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found at a link.

    Args:
        link: The link, such as ``database`` or ``sources``.
        level: Whether it holds; a note is worth knowing, and nothing is broken.
        what: In a sentence, with names and numbers.
        command: The command that mends it, or shows more; empty where there is none.
        remedy: What to do, in words; empty where the command says it all.
        cluster: The cluster that it is about; None for the installation.
    """

    link: str
    level: Level
    what: str
    command: str = ""
    remedy: str = ""
    cluster: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it under its published keys."""
        return {
            "link": self.link,
            "cluster": self.cluster,
            "level": self.level.value,
            "what": self.what,
            "remedy": self.remedy,
            "command": self.command,
        }


def fine(link: str, what: str, *, cluster: str | None = None) -> Finding:
    """Return that a link holds."""
    return Finding(link, Level.FINE, what, cluster=cluster)


def is_broken(findings: Iterable[Finding]) -> bool:
    """Say whether any link is broken."""
    return any(each.level is Level.WRONG for each in findings)


def first_broken(findings: Iterable[Finding]) -> Finding | None:
    """Return the first broken link: those after it may only follow from it."""
    return next((each for each in findings if each.level is Level.WRONG), None)
