"""Runs that have to leave, and why. Pure."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gpuledger.policy.contenders import Standing
from gpuledger.policy.fair_share import Turn
from gpuledger.policy.state import RunningRun


class Ground(StrEnum):
    """Why a run has to leave."""

    UNALLOCATED = "unallocated"
    RATIO = "ratio"
    ISSUE = "issue"
    """Its side runs more than it is issued, and the asker's less; where GPUs are divided by credits."""
    OWN = "own"
    RESERVED = "reserved"
    PASSED_ON = "passed on"
    """It was to leave for a reservation, whose workload started elsewhere; others were promised its GPUs meanwhile."""
    EARLIER = "earlier"
    """An earlier cycle decided it, and the run is still there."""
    DRAINING = "draining"

    @property
    def group(self) -> int:
        """Which group of candidates leaves first: the lowest."""
        return _GROUPS[self]


_GROUPS: Final = {ground: group for group, ground in enumerate(Ground)}


@dataclass(frozen=True, slots=True)
class Victim:
    """A run that has to leave.

    Args:
        run: The run.
        ground: Why.
        asker: For whom; None when its host is emptied.
        mine: Where the asker's side stood at the beginning of the cycle, for ``Ground.RATIO`` and ``Ground.ISSUE``.
        theirs: Where the run's side stood.
    """

    run: RunningRun
    ground: Ground
    asker: Turn | None = None
    mine: Standing | None = None
    theirs: Standing | None = None
