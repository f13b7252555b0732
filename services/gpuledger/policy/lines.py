"""The queue of a class of work: every account's work in its order, merged level by level.

What a workload will hold is counted as use of its account, and of every account above, before the next one is picked.
So the figures of an account depend on how many of *its own* workloads went before, and on nothing else: below each
account the order is a sequence of its own. Along that sequence no figure ever gets better. Use and running GPUs grow,
so the ratio and the shortfall only get worse, and so does the tier: a gang that the floor does not lift carries the
account beyond its entitlement, hence beyond its floor. The oldest that still waits only gets younger. The heads of
siblings are therefore picked in the order of these figures over all their workloads at once: siblings are merged by
sorting, and one workload more changes the sequences on its own path only.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain, repeat
from typing import Final, Protocol, TypeVar

from gpuledger.policy.contenders import Contender, Standing, Tier
from gpuledger.policy.state import PendingWorkload, WorkClass

T = TypeVar("T")

Rank = tuple[int, int, int, int, int, int]
"""Tier, ratio, surplus, oldest, place among the siblings, place in the sequence: the least is next."""

_SIBLING: Final = 4
_PLACE: Final = 5


Ask = tuple[WorkClass, int, str | None, int]
"""Class of work, milli-GPU, model, minimum runtime: who asks for the same waits for the same."""

Entry = tuple[int, int, str, int, int, int, PendingWorkload, Ask]
"""Priority (negative), submit time, id: the least is next in its account. Then the expected hold in gpu_ms, milli-GPU,
since when it is eligible, the workload, and what it asks for."""

NAME: Final = 2
GPU_MS: Final = 3
GPUS_MILLI: Final = 4
ELIGIBLE: Final = 5
WORKLOAD: Final = 6
ASK: Final = 7


class Sums:
    """What is summed up along the work of a leaf, whoever goes before; worked out once, when it is asked for.

    Args:
        entries: The work, in its order, which stays as it is.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries

    @cached_property
    def held_gpu_ms(self) -> list[int]:
        """What those before each are expected to hold, and all of them."""
        return list(accumulate([entry[GPU_MS] for entry in self.entries], initial=0))

    @cached_property
    def gpus_milli(self) -> list[int]:
        """The milli-GPU of those before each, and of all of them."""
        return list(accumulate([entry[GPUS_MILLI] for entry in self.entries], initial=0))

    @cached_property
    def oldest_s(self) -> list[int]:
        """Since when the oldest is eligible of each and those behind it."""
        return oldest(self.entries)

    @cached_property
    def asks(self) -> list[Ask]:
        """What each asks for."""
        return [entry[ASK] for entry in self.entries]


class Queue(Protocol):
    """What a turn asks its queue; how a place is written is the queue's affair."""

    def rank_of(self, place: int) -> int:
        """Return how many are before it."""

    def spots(self, place: int) -> "list[tuple[Line, int]]":
        """Return the lines from its root down to its leaf, and its place in each."""

    def beside(self, place: int) -> "list[Iterable[Line]]":
        """Return for each of them the lines of its siblings that have work, its own included."""

    def leaf(self, place: int) -> "tuple[Line, int]":
        """Return the last of them."""


class Line:
    """An account and the work below it, in its order.

    Args:
        contender: How the account stands before any of it starts.
        entries: The work, next first.
        below: The children that have work, by their place among the siblings; none for a leaf.
        merged: Whose entry each is, for an account with children.
        sums: What is summed up along the work, for whoever keeps it.
    """

    __slots__ = (
        "_asks", "_firsts", "_ranks", "_running", "_sums", "_used", "below", "contender", "entries", "merged",
    )  # fmt: skip

    def __init__(
        self,
        contender: Contender,
        entries: Sequence[Entry],
        below: Mapping[int, "Line"] | None = None,
        merged: Sequence[Rank] = (),
        sums: Sums | None = None,
    ) -> None:
        self.contender = contender
        self.entries = entries
        self.below = below or {}
        self.merged = merged
        self._sums = sums
        self._used: list[int] | None = None
        self._running: list[int] | None = None
        self._ranks: list[Rank] | None = None
        self._asks: list[Ask] | None = None
        self._firsts: tuple[int, ...] | None = None

    def of(self, contender: Contender) -> "Line":
        """Return the same work where the account stands otherwise; itself where it stands as it did."""
        if contender.stands_as(self.contender):
            return self
        line = Line(contender, self.entries, self.below, self.merged, self._sums)
        line._asks, line._firsts = self._asks, self._firsts
        return line

    @property
    def asks(self) -> list[Ask]:
        """What each asks for."""
        if self._asks is None:
            self._asks = [entry[ASK] for entry in self.entries] if self._sums is None else self._sums.asks
        return self._asks

    @property
    def models(self) -> set[str | None]:
        """The GPU models that are insisted on, None where any will do."""
        return {gpu_model for _, _, gpu_model, _ in self.asks}

    @property
    def firsts(self) -> tuple[int, ...]:
        """The first place of all who ask for the same."""
        if self._firsts is None:
            self._firsts = tuple(firsts(self.asks, 0))
        return self._firsts

    @property
    def used(self) -> list[int]:
        """Use before each entry starts, and after the last."""
        if self._used is None:
            used = self.contender.used
            self._used = (
                list(accumulate([e[GPU_MS] for e in self.entries], initial=used))
                if self._sums is None
                else [used + held for held in self._sums.held_gpu_ms]
            )
        return self._used

    @property
    def running(self) -> list[int]:
        """Running GPUs before each entry starts, and after the last."""
        if self._running is None:
            running = self.contender.running_milli
            self._running = (
                list(accumulate([e[GPUS_MILLI] for e in self.entries], initial=running))
                if self._sums is None
                else [running + milli for milli in self._sums.gpus_milli]
            )
        return self._running

    def ranks(self, place: int, among: Contender) -> list[Rank]:
        """Return what each entry is compared by with the work of the siblings, in ascending order."""
        if self._ranks is None:
            self._ranks = self._rank(place, among)
        return self._ranks

    def _rank(self, place: int, among: Contender) -> list[Rank]:
        mine, count = self.contender, len(self.entries)
        if len(among.children) == 1:
            return list(zip(*(repeat(0, count) for _ in range(4)), repeat(place), range(count), strict=False))
        used, lifted = self.used, self.lifted
        bits, entitled, scale, base = among.rank_bits, mine.entitled, mine.scale, mine.base
        tiers: Iterable[int] = repeat(int(mine.tier(mine.running_milli, 0, waits=False)))
        ratios: Iterable[int] = repeat(0)
        if lifted:
            tiers = chain(repeat(int(Tier.BELOW_FLOOR), lifted), repeat(int(Tier.BY_RATIO)))
        if mine.share and entitled:
            ratios = [(amount << bits) // entitled for amount in used]
        ages = oldest(self.entries) if self._sums is None else self._sums.oldest_s
        surplus = [amount * scale - base for amount in used]
        return list(zip(tiers, ratios, surplus, ages, repeat(place), range(count), strict=False))

    def standing(self, place: int) -> Standing:
        """Return how the account stands when so many of its workloads went before."""
        mine = self.contender
        return Standing(mine.path, self.used[place] * mine.scale, mine.entitled, self.tier(place))

    @property
    def lifted(self) -> int:
        """For how many of the first the floor counts."""
        mine = self.contender
        if mine.running_milli >= mine.floor_milli:
            return 0
        below = bisect_left(self.running, mine.floor_milli, 0, len(self.entries))
        return min(below, bisect_right(self.running, mine.present_milli, 1) - 1)

    def tier(self, place: int) -> Tier:
        """Return the tier of the account when so many of its workloads went before, for the next of them."""
        return self.contender.tier(self.running[place], self.entries[place][GPUS_MILLI])

    def rank_of(self, place: int) -> int:
        """Return how many are before an entry."""
        return place

    def spots(self, place: int) -> list[tuple["Line", int]]:
        """Return the lines below this account down to the leaf of an entry, and its place in each."""
        line, found = self, []
        while line.below:
            rank = line.merged[place]
            line, place = line.below[rank[_SIBLING]], rank[_PLACE]
            found.append((line, place))
        return found

    def spot(self, place: int, level: int) -> tuple["Line", int]:
        """Return one of ``spots``, counted from the root's."""
        line = self
        for _ in range(level + 1):
            rank = line.merged[place]
            line, place = line.below[rank[_SIBLING]], rank[_PLACE]
        return line, place

    def of_leaves(self, own: "Callable[[Line], Sequence[T]]") -> Sequence[T]:
        """Return what each entry has in its leaf's line, of a sequence that each of these has."""
        if not self.below:
            return own(self)
        found = {place: line.of_leaves(own) for place, line in self.below.items()}
        return [found[rank[_SIBLING]][rank[_PLACE]] for rank in self.merged]

    def beside(self, place: int) -> list[Iterable["Line"]]:
        """Return for each line on that way those of the siblings that have work, its own included."""
        found: list[Iterable[Line]] = []
        line = self
        while line.below:
            rank = line.merged[place]
            found.append(line.below.values())
            line, place = line.below[rank[_SIBLING]], rank[_PLACE]
        return found

    def leaf(self, place: int) -> tuple["Line", int]:
        """Return the leaf of an entry, and its place there."""
        line = self
        while line.below:
            rank = line.merged[place]
            line, place = line.below[rank[_SIBLING]], rank[_PLACE]
        return line, place


def firsts(kinds: Sequence[Hashable], start: int) -> Iterable[int]:
    """Return the first place of every kind from a start on."""
    backwards = range(len(kinds) - 1, start - 1, -1)
    return dict(zip(reversed(kinds[start:]), backwards, strict=True)).values()


def oldest(entries: Sequence[Entry]) -> list[int]:
    """Return since when the oldest is eligible of each and those behind it."""
    return list(accumulate([entry[ELIGIBLE] for entry in reversed(entries)], min))[::-1]


def line_up(top: Contender, line_of: Callable[[Contender], Line]) -> Line:
    """Return the line of an account from those of the leaves."""
    if not top.children:
        return line_of(top)
    below = {place: line_up(child, line_of) for place, child in enumerate(top.children)}
    return merge(top, {place: line for place, line in below.items() if line.entries})


def merge(top: Contender, below: Mapping[int, Line]) -> Line:
    """Return the line of an account from the lines of its children."""
    if len(below) == 1:
        ((place, line),) = below.items()
        return Line(top, line.entries, below, line.ranks(place, top))
    merged = sorted(chain.from_iterable(line.ranks(place, top) for place, line in below.items()))
    entries = {place: line.entries for place, line in below.items()}
    return Line(top, [entries[rank[_SIBLING]][rank[_PLACE]] for rank in merged], below, merged)
