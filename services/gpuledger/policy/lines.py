"""The queue of a class of work: every account's work in its order, merged level by level.

What a workload will hold is counted as use of its account, and of every account above, before the next one is picked.
So the figures of an account depend on how many of *its own* workloads went before, and on nothing else: below each
account the order is a sequence of its own. Along that sequence no figure ever gets better. Use and running GPUs grow,
so the tier, the ratio and the shortfall only get worse, and the oldest that still waits only gets younger. The heads of
siblings are therefore picked in the order of these figures over all their workloads at once: siblings are merged by
sorting, and one workload more changes the sequences on its own path only.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, repeat
from typing import NamedTuple, Protocol

from gpuledger.policy.contenders import Contender, Standing, Tier
from gpuledger.policy.state import PendingWorkload

Rank = tuple[int, int, int, int, int, int]
"""Tier, ratio, surplus, oldest, place among the siblings, place in the sequence: the least is next."""

_SIBLING, _PLACE = 4, 5


class Entry(NamedTuple):
    """A workload and what it counts.

    Args:
        gpu_ms: What it is expected to hold.
        gpus_milli: What it asks for.
        eligible_at_s: Since when it waits.
        workload: The workload.
    """

    gpu_ms: int
    gpus_milli: int
    eligible_at_s: int
    workload: PendingWorkload


class Queue(Protocol):
    """What a turn asks its queue; how a place is written is the queue's affair."""

    def rank_of(self, place: int) -> int:
        """Return how many are before it."""

    def chain(self, place: int) -> tuple[Standing, ...]:
        """Return the standings from its root down to its leaf."""

    def leaf(self, place: int) -> "tuple[Line, int]":
        """Return its leaf, and its place there."""


class Line:
    """An account and the work below it, in its order.

    Args:
        contender: How the account stands before any of it starts.
        entries: The work, next first.
        below: The children that have work, by their place among the siblings; none for a leaf.
        merged: Whose entry each is, for an account with children.

    Attributes:
        used: Use before each entry starts.
        running: Running GPUs before each entry starts.
    """

    __slots__ = ("_ranks", "below", "contender", "entries", "merged", "running", "used")

    def __init__(
        self,
        contender: Contender,
        entries: Sequence[Entry],
        below: Mapping[int, "Line"] | None = None,
        merged: Sequence[Rank] = (),
    ) -> None:
        self.contender = contender
        self.entries = entries
        self.below = below or {}
        self.merged = merged
        self.used = list(accumulate((entry[0] for entry in entries), initial=contender.used))
        self.running = list(accumulate((entry[1] for entry in entries), initial=contender.running_milli))
        self._ranks: list[Rank] | None = None

    def ranks(self, place: int, among: Contender) -> list[Rank]:
        """Return what each entry is compared by with the work of the siblings, in ascending order."""
        if self._ranks is None:
            self._ranks = self._rank(place, among)
        return self._ranks

    def _rank(self, place: int, among: Contender) -> list[Rank]:
        mine, count = self.contender, len(self.entries)
        used = self.used[:count]
        if len(among.children) == 1:
            return list(zip(*(repeat(0, count) for _ in range(4)), repeat(place), range(count), strict=False))
        tiers = [int(mine.tier(self.running[0]))] * count
        if tiers[0] == Tier.BELOW_FLOOR:
            rising = bisect_left(self.running, mine.floor_milli, 0, count)
            tiers[rising:] = [int(Tier.BY_RATIO)] * (count - rising)
        bits, entitled, scale, base = among.rank_bits, mine.entitled, mine.scale, mine.base
        ratios: Iterable[int] = repeat(0)
        if tiers[0] <= Tier.BY_RATIO:
            ratios = [(amount << bits) // entitled for amount in used]
        ages = list(accumulate((entry[2] for entry in reversed(self.entries)), min))
        surplus = [amount * scale - base for amount in used]
        return list(zip(tiers, ratios, surplus, reversed(ages), repeat(place), range(count), strict=False))

    def standing(self, place: int) -> Standing:
        """Return how the account stands when so many of its workloads went before."""
        mine = self.contender
        return Standing(
            mine.path, self.used[place] * mine.scale, mine.entitled, mine.tier(self.running[place])
        )

    def rank_of(self, place: int) -> int:
        """Return how many are before an entry."""
        return place

    def chain(self, place: int) -> tuple[Standing, ...]:
        """Return the standings below this account down to the leaf of an entry."""
        line, found = self, []
        while line.below:
            rank = line.merged[place]
            line, place = line.below[rank[_SIBLING]], rank[_PLACE]
            found.append(line.standing(place))
        return tuple(found)

    def leaf(self, place: int) -> tuple["Line", int]:
        """Return the leaf of an entry, and its place there."""
        line = self
        while line.below:
            rank = line.merged[place]
            line, place = line.below[rank[_SIBLING]], rank[_PLACE]
        return line, place


def line_up(top: Contender, waiting: Mapping[str, Sequence[Entry]]) -> Line:
    """Return the line of an account from the work of the leaves, each in its order."""
    if not top.children:
        return Line(top, waiting.get(top.path, ()))
    below = {place: line_up(child, waiting) for place, child in enumerate(top.children)}
    return merge(top, {place: line for place, line in below.items() if line.entries})


def merge(top: Contender, below: Mapping[int, Line]) -> Line:
    """Return the line of an account from the lines of its children."""
    merged = sorted(chain.from_iterable(line.ranks(place, top) for place, line in below.items()))
    entries = {place: line.entries for place, line in below.items()}
    return Line(top, [entries[rank[_SIBLING]][rank[_PLACE]] for rank in merged], below, merged)
