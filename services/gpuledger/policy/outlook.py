"""What many workloads wait for alike: one view of the cluster, said to each with its own place and figures."""

from collections.abc import Sequence

from gpuledger.policy import explain
from gpuledger.policy.fair_share import Turn
from gpuledger.policy.lines import Line
from gpuledger.policy.state import Reservation


class Outlook:
    """Why nobody who asks for the same can start, as it stood at one point of the walk.

    Args:
        free_milli: What was free.
        blocking: The reservation but for which it would fit.
        ahead: The head of the size class; None for unallocated work, which waits for what is free.
    """

    __slots__ = ("ahead", "blocking", "free_milli", "is_funded")

    def __init__(
        self,
        free_milli: int,
        blocking: Reservation | None = None,
        ahead: explain.Ahead | None = None,
    ) -> None:
        self.free_milli = free_milli
        self.blocking = blocking
        self.ahead = ahead
        self.is_funded = ahead is not None

    def reason(self, turn: Turn) -> str:
        """Say it to one of them."""
        return self.told(turn)[0]

    def numbers(self, turn: Turn) -> dict[str, int]:
        """Return the figures behind what is said."""
        return self.told(turn)[1]

    def told(self, turn: Turn) -> tuple[str, dict[str, int]]:
        """Return both."""
        spots = turn.spots()
        numbers = figures(turn, self.free_milli, spots)
        if self.ahead is None:
            return explain.waits_for_free(turn, free_milli=self.free_milli), numbers
        if self.blocking is not None:
            numbers["reserved_at_s"] = self.blocking.at_s
            return explain.waits_beside(turn, self.blocking), numbers
        numbers["head_missing_milli"] = self.ahead.missing_milli
        return self.ahead.told(numbers["position"], spots), numbers


def figures(turn: Turn, free_milli: int, spots: Sequence[tuple[Line, int]] | None = None) -> dict[str, int]:
    """Return what is told of every turn: place, GPUs asked for, free and missing, and the ratio of its account."""
    klass, asked_milli, _, _ = turn.ask
    numbers = {
        "position": turn.position,
        "gpus_milli": asked_milli,
        "free_milli": free_milli,
        "missing_milli": asked_milli - free_milli if asked_milli > free_milli else 0,
    }
    if klass == "allocated":
        leaf, place = (spots or turn.spots())[-1]
        mine = leaf.contender
        if mine.entitled:
            used = leaf.used[place] * mine.scale
            numbers["ratio_ppm"] = explain.ratio_millionths(used, mine.entitled) or 0
    return numbers
