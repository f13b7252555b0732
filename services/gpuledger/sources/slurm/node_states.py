"""What Slurm says of a node's state -> the health of a host.

Slurm names a base state and any number of flags, in capitals, in small letters, abbreviated, or as one sign
behind the state (``drain*``). A word that is not known is never taken for health.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from gpuledger.events.host import HostState
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.values import shown

FUTURE = "future"
"""The base state of a node that is written down and not there."""

_SIGNS = {
    "*": "not-responding",
    "$": "maint",
    "@": "reboot-requested",
    "^": "reboot-issued",
    "~": "powered-down",
    "#": "powering-up",
    "!": "power-down",
    "%": "powering-down",
    "-": "planned",
}

_SPELLINGS = {
    "alloc": "allocated",
    "mix": "mixed",
    "comp": "completing",
    "resv": "reserved",
    "plnd": "planned",
    "unk": "unknown",
    "futr": FUTURE,
    "npc": "perfctrs",
    "drained": "drain",
    "draining": "drain",
    "drng": "drain",
    "failing": "fail",
    "failg": "fail",
    "inval": "invalid-reg",
    "maintenance": "maint",
    "no-respond": "not-responding",
    "boot": "reboot-issued",
    "reboot": "reboot-requested",
    "powd": "powered-down",
    "pow-dn": "powering-down",
    "pow-up": "powering-up",
}

_UNHEALTHY = ("fail", "error", "down", "invalid-reg", "not-responding")
_USABLE = frozenset(
    (
        "allocated",
        "blocked",
        "cloud",
        "completing",
        "dynamic-future",
        "dynamic-norm",
        "external",
        "idle",
        "mixed",
        "perfctrs",
        "planned",
        "power-down",
        "power-drain",
        "power-up",
        "powered-down",
        "powering-down",
        "powering-up",
        "reboot-canceled",
        "reboot-requested",
        "resume",
        "undrain",
    )
)
_DECIDING: tuple[tuple[str, HostState | None], ...] = (
    (FUTURE, None),
    ("maint", "maintenance"),
    *((word, "unhealthy") for word in _UNHEALTHY),
    ("reboot-issued", "maintenance"),
    ("drain", "draining"),
    ("unknown", None),
    ("reserved", "reserved"),
)
"""The first of these that is said decides: a window that was planned before a fault in it, a fault before a drain, and
whatever is wrong before a reservation."""

_CODE_CHARACTERS = 60
_NOT_IN_A_CODE = re.compile(r"[^a-z0-9]+")


class Health(NamedTuple):
    """The health of a host.

    Args:
        state: Its health; None when there is no evidence of any, or no host.
        word: The word that decided, as a short code; ``idle`` stands for every state of a host that can be used.
    """

    state: HostState | None
    word: str


def health(field: str, words: Iterable[str]) -> Health:
    """Return the health that a state and its flags mean.

    Raises:
        BadRecord: When there is no state, or a word is not known.
    """
    said = {spelled for word in words for part in word.split("+") for spelled in _spelled(field, part)}
    if not said:
        raise BadRecord(
            f"{field}: is missing",
            code="missing-value",
            hint="ask for the state of the node too, and import it again",
        )
    for word, state in _DECIDING:
        if word in said:
            return Health(state, word)
    return Health("healthy", "idle")


def reason_code(word: str, reason: str) -> str:
    """Return why a host is not healthy as a short code, such as ``down/not-responding``."""
    code = _NOT_IN_A_CODE.sub("-", reason.lower()).strip("-")[:_CODE_CHARACTERS].rstrip("-")
    return f"{word}/{code}" if code and code != "none" else word


def _spelled(field: str, word: str) -> Iterable[str]:
    """Return what one word says, its signs included."""
    bare = word.strip()
    signs: list[str] = []
    while bare and bare[-1] in _SIGNS:
        signs.append(_SIGNS[bare[-1]])
        bare = bare[:-1]
    if not bare:
        return signs
    plain = bare.lower().replace("_", "-")
    plain = _SPELLINGS.get(plain, plain)
    if plain not in _KNOWN:
        raise BadRecord(
            f"{field}: {shown(word)} is not a state of a node that is known",
            code="unknown-state",
            hint="report the word, so that it can be given a meaning; no health is guessed",
        )
    return [plain, *signs]


_KNOWN = _USABLE | {word for word, _ in _DECIDING}
