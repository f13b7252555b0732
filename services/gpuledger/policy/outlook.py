"""What many workloads wait for alike: one view of the cluster, said to each with its own place and figures.

Sentence and figures are a pure function of the view and of what is a workload's own, so that they are made when
somebody reads them: of the walk's values right after it, or of a record later (``pieces``).
"""

from typing import NamedTuple

from gpuledger.policy import explain
from gpuledger.policy.contenders import Tier
from gpuledger.policy.fair_share import Turn
from gpuledger.policy.lines import Line


class Own(NamedTuple):
    """What is a workload's own of what it is told.

    Args:
        position: Its place in the order, from 1.
        account: The leaf that it counts at.
        ratio_ppm: The ratio of its account in millionths, for funded work; None without entitlement.
        parting_ppm: Likewise of its side where its path and that of the head of its size class part, for who waits
            behind one.
        is_below: Whether its side runs below its floor there.
    """

    position: int
    account: str
    ratio_ppm: int | None = None
    parting_ppm: int | None = None
    is_below: bool = False


class Outlook:
    """Why nobody who asks for the same can start, as it stood at one point of the walk.

    Args:
        gpus_milli: What they ask for.
        free_milli: What was free.
        blocking: The reservation but for which it would fit.
        ahead: The head of the size class; None for unallocated work, which waits for what is free.
    """

    __slots__ = ("ahead", "blocking", "free_milli", "gpus_milli", "is_funded")

    def __init__(
        self,
        gpus_milli: int,
        free_milli: int,
        blocking: explain.Kept | None = None,
        ahead: explain.Ahead | None = None,
    ) -> None:
        self.gpus_milli = gpus_milli
        self.free_milli = free_milli
        self.blocking = blocking
        self.ahead = ahead
        self.is_funded = ahead is not None

    @property
    def said(self) -> tuple[int, int, explain.Kept | None, explain.Ahead | None]:
        """What it says, as it is made of."""
        return self.gpus_milli, self.free_milli, self.blocking, self.ahead

    def own(self, turn: Turn) -> Own:
        """Return what is a turn's own of it."""
        spots = turn.spots()
        leaf, place = spots[-1]
        account = leaf.contender.path
        if self.ahead is None:
            return Own(turn.position, account)
        ratio_ppm = ratio_of(leaf, place)
        if self.blocking is not None:
            return Own(turn.position, account, ratio_ppm)
        line, place = spots[self.ahead.level(account)]
        is_below = line.tier(place) is Tier.BELOW_FLOOR
        return Own(turn.position, account, ratio_ppm, ratio_of(line, place), is_below)

    def told(self, own: Own) -> tuple[str, dict[str, int]]:
        """Return the sentence for one of them, and the figures behind it."""
        numbers = _figures(own.position, self.gpus_milli, self.free_milli)
        if own.ratio_ppm is not None:
            numbers["ratio_ppm"] = own.ratio_ppm
        if self.ahead is None:
            return (
                explain.waits_for_free(
                    own.position, own.account, self.gpus_milli, free_milli=self.free_milli
                ),
                numbers,
            )
        if self.blocking is not None:
            numbers["reserved_at_s"] = self.blocking.at_s
            return explain.waits_beside(own.position, self.gpus_milli, self.blocking), numbers
        numbers["head_missing_milli"] = self.ahead.missing_milli
        return self.ahead.told(own.position, own.account, own.parting_ppm, is_below=own.is_below), numbers


def figures(turn: Turn, free_milli: int) -> dict[str, int]:
    """Return what is told of every turn: place, GPUs asked for, free and missing, and the ratio of its account."""
    klass, asked_milli, _, _ = turn.ask
    numbers = _figures(turn.position, asked_milli, free_milli)
    if klass == "allocated":
        ratio_ppm = ratio_of(*turn.spots()[-1])
        if ratio_ppm is not None:
            numbers["ratio_ppm"] = ratio_ppm
    return numbers


def ratio_of(line: Line, place: int) -> int | None:
    """Return the ratio of an account in millionths when so many of its workloads went before."""
    mine = line.contender
    return explain.ratio_millionths(line.used[place] * mine.scale, mine.entitled)


def _figures(position: int, asked_milli: int, free_milli: int) -> dict[str, int]:
    return {
        "position": position,
        "gpus_milli": asked_milli,
        "free_milli": free_milli,
        "missing_milli": max(asked_milli - free_milli, 0),
    }
