"""States of Slurm jobs: a base state with flags, written in one word, in a list, or with a remark behind it.

A word that is not known here is refused: nobody can say whether such a job holds GPUs.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.values import shown


class Kind(StrEnum):
    """What a state means for the GPUs of a job."""

    PENDING = "pending"
    """It holds none yet; a start is an expectation."""
    RUNNING = "running"
    """It holds its GPUs; an end is an expectation."""
    SUSPENDED = "suspended"
    """It does not run, and holds its GPUs all the same."""
    RESIZED = "resized"
    """It goes on with another size, which has a record of its own."""
    REQUEUED = "requeued"
    """This run is over, and the job waits again."""
    PREEMPTED = "preempted"
    """The scheduler took the GPUs back; whether the job waits again is told by a later record alone."""
    ENDED = "ended"
    """It is over."""
    REVOKED = "revoked"
    """It ran on another cluster of the federation, and here never."""


BASES = {
    "PENDING": Kind.PENDING,
    "RUNNING": Kind.RUNNING,
    "SUSPENDED": Kind.SUSPENDED,
    "COMPLETED": Kind.ENDED,
    "CANCELLED": Kind.ENDED,
    "FAILED": Kind.ENDED,
    "TIMEOUT": Kind.ENDED,
    "NODE_FAIL": Kind.ENDED,
    "PREEMPTED": Kind.PREEMPTED,
    "BOOT_FAIL": Kind.ENDED,
    "DEADLINE": Kind.ENDED,
    "OUT_OF_MEMORY": Kind.ENDED,
}
"""Every job is in one of these."""

DECIDING = {"REVOKED": Kind.REVOKED, "RESIZING": Kind.RESIZED, "REQUEUED": Kind.REQUEUED}
"""Flags that say what a record means; the first that is there decides. Accounting stores them without a base state,
which reads as ``PENDING`` (0) where flags are listed."""

ALONE = {
    "COMPLETING": Kind.ENDED,
    "CONFIGURING": Kind.RUNNING,
    "EXPEDITING": Kind.PENDING,
    "POWER_UP_NODE": Kind.RUNNING,
    "REQUEUE_FED": Kind.PENDING,
    "REQUEUE_HOLD": Kind.PENDING,
    "RESV_DEL_HOLD": Kind.PENDING,
    "SIGNALING": Kind.RUNNING,
    "SPECIAL_EXIT": Kind.PENDING,
    "STAGE_OUT": Kind.ENDED,
    "STOPPED": Kind.SUSPENDED,
}
"""Flags that older versions print in place of the base state, and what that base state is."""

FLAGS = frozenset((*DECIDING, *ALONE, "LAUNCH_FAILED", "RECONFIG_FAIL", "UPDATE_DB"))
"""What may stand beside a base state."""


PENDING, RUNNING, SUSPENDED, RESIZED = Kind.PENDING, Kind.RUNNING, Kind.SUSPENDED, Kind.RESIZED
REQUEUED, PREEMPTED, REVOKED = Kind.REQUEUED, Kind.PREEMPTED, Kind.REVOKED
"""The members by names of their own: Python 3.11 takes longer to look one up in its class than to read a time."""

_HOLDING = (PENDING, RUNNING, SUSPENDED)


class State(NamedTuple):
    """The state of a job.

    Args:
        kind: What it means.
        name: The word that says so, such as ``NODE_FAIL``.
        flags: What else is said, such as ``COMPLETING``.
    """

    kind: Kind
    name: str
    flags: frozenset[str] = frozenset()

    @property
    def is_over(self) -> bool:
        """Whether this run holds nothing any more."""
        return self.kind not in _HOLDING


_known: dict[str, State] = {}


def state_of(field: str, words: str | Sequence[str]) -> State:
    """Return the state that is written in a word or in a list of words.

    Args:
        field: The name of the field, for messages.
        words: Such as ``CANCELLED by 1001``, ``RUNNING+COMPLETING`` or ``["RUNNING", "CONFIGURING"]``.

    Raises:
        BadRecord: When it is missing, or one of the words is not known, or two base states contradict each other.
    """
    text = words if isinstance(words, str) else " ".join(words)
    state = _known.get(text)
    if state is None:
        state = _state(field, text, words)
        if len(_known) < 1024:  # noqa: PLR2004 - the remark "by UID" makes more of them than there are states
            _known[text] = state
    return state


def _state(field: str, text: str, words: str | Sequence[str]) -> State:
    if isinstance(words, str):
        words = words.partition(" by ")[0].replace(",", "+").split("+")
    found = [word.strip().upper() for word in words if word.strip()]
    bases = list(dict.fromkeys(word for word in found if word in BASES))
    flags = frozenset(word for word in found if word in FLAGS)
    if not found:
        raise BadRecord(f"{field}: is missing", code="missing-value", hint="ask Slurm for the state too")
    named = (*bases, *(word for word in (*DECIDING, *ALONE) if word in flags))
    if not named or len(bases) > 1 or any(word not in BASES and word not in FLAGS for word in found):
        raise BadRecord(
            f"{field}: {shown(text)} is no state that is known",
            code="unknown-state",
            hint="the record is kept: retry it with a version of gpuledger that knows the state",
        )
    deciding = next((word for word in DECIDING if word in flags), None)
    if deciding and (not bases or bases[0] == "PENDING"):
        return State(DECIDING[deciding], deciding, flags)
    return State(BASES.get(named[0]) or ALONE[named[0]], named[0], flags)
