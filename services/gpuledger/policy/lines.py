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
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import accumulate, chain, repeat
from typing import Final, Protocol, TypeVar, overload

from gpuledger.policy.contenders import Contender, Standing, Tier
from gpuledger.policy.state import PendingWorkload, WorkClass

T = TypeVar("T")
Kind = TypeVar("Kind", bound=Hashable)

Rank = tuple[int, int, int, int, int, int]
"""Tier, ratio, surplus, oldest, place among the siblings, place in the sequence: the least is next."""

SIBLING: Final = 4
PLACE: Final = 5


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


LONG: Final = 128
"""Of more kept work than this, figures are worked out for those places alone that are asked for."""


class Summed(Protocol):
    """The work of a leaf, and what is summed up along it, whoever goes before."""

    def __len__(self) -> int:
        """Return how much work there is."""

    @property
    def kinds(self) -> Collection[Ask]:
        """What is asked for."""

    @property
    def held_gpu_ms(self) -> list[int]:
        """What those before each are expected to hold, and all of them."""

    @property
    def gpus_milli(self) -> list[int]:
        """The milli-GPU of those before each, and of all of them."""

    @property
    def oldest_s(self) -> list[int]:
        """Since when the oldest is eligible of each and those behind it."""

    @property
    def asks(self) -> list[Ask]:
        """What each asks for."""

    def held_before(self, place: int) -> int:
        """Return what those before a place are expected to hold."""

    def milli_before(self, place: int) -> int:
        """Return the milli-GPU of those before a place."""

    def oldest_from(self, place: int) -> int:
        """Return since when the oldest is eligible of the work at a place and behind it."""

    def first_of(self, asks: Iterable[Ask], start: int) -> int | None:
        """Return the first place, from one on, of those who ask for one of these; None without any."""


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
        "_behind", "_firsts", "_ranks", "_running", "_used", "below", "contender", "entries", "merged", "sums",
    )  # fmt: skip

    def __init__(
        self,
        contender: Contender,
        entries: Sequence[Entry],
        below: Mapping[int, "Line"] | None = None,
        merged: Sequence[Rank] = (),
        sums: Summed | None = None,
    ) -> None:
        self.contender = contender
        self.entries = entries
        self.below = below or {}
        self.merged = merged
        self.sums = sums
        self._used: Sequence[int] | None = None
        self._running: Sequence[int] | None = None
        self._ranks: Sequence[Rank] | None = None
        self._firsts: dict[Ask, int] | None = None
        self._behind: tuple[int, dict[Ask, int]] | None = None

    def of(self, contender: Contender) -> "Line":
        """Return the same work where the account stands otherwise; itself where it stands as it did."""
        if contender.stands_as(self.contender):
            return self
        line = Line(contender, self.entries, self.below, self.merged, self.sums)
        line._firsts = self._firsts
        return line

    @property
    def kinds(self) -> Collection[Ask]:
        """What is asked for."""
        return self._first_places(0).keys() if self.sums is None else self.sums.kinds

    @property
    def models(self) -> set[str | None]:
        """The GPU models that are insisted on, None where any will do."""
        return {gpu_model for _, _, gpu_model, _ in self.kinds}

    def first_of(self, asks: Iterable[Ask], start: int) -> int | None:
        """Return the first place, from one on, of those who ask for one of these; None without any."""
        if self.sums is not None:
            return self.sums.first_of(asks, start)
        places = self._first_places(start)
        return min([places[ask] for ask in asks if ask in places], default=None)

    def _first_places(self, start: int) -> dict[Ask, int]:
        """Return the first place, from one on, of everything that is asked for."""
        if start:
            if self._behind is None or self._behind[0] != start:
                self._behind = start, firsts([entry[ASK] for entry in self.entries[start:]], start)
            return self._behind[1]
        if self._firsts is None:
            self._firsts = firsts([entry[ASK] for entry in self.entries], 0)
        return self._firsts

    @property
    def used(self) -> Sequence[int]:
        """Use before each entry starts, and after the last."""
        if self._used is None:
            used, sums = self.contender.used, self.sums
            if sums is None:
                self._used = list(accumulate([e[GPU_MS] for e in self.entries], initial=used))
            elif self._is_long:
                self._used = Along(len(sums) + 1, lambda place: used + sums.held_before(place))
            else:
                self._used = [used + held for held in sums.held_gpu_ms]
        return self._used

    @property
    def running(self) -> Sequence[int]:
        """Running GPUs before each entry starts, and after the last."""
        if self._running is None:
            running, sums = self.contender.running_milli, self.sums
            if sums is None:
                self._running = list(accumulate([e[GPUS_MILLI] for e in self.entries], initial=running))
            elif self._is_long:
                self._running = Along(len(sums) + 1, lambda place: running + sums.milli_before(place))
            else:
                self._running = [running + milli for milli in sums.gpus_milli]
        return self._running

    def oldest_from(self, place: int) -> int:
        """Return since when the oldest is eligible of the work at a place and behind it."""
        if self.sums is None:
            return min(entry[ELIGIBLE] for entry in self.entries[place:])
        return self.sums.oldest_from(place)

    @property
    def _is_long(self) -> bool:
        """Say whether figures are worked out for those places alone that are asked for."""
        return self.sums is not None and len(self.sums) > LONG

    def ranks(self, place: int, among: Contender) -> Sequence[Rank]:
        """Return what each entry is compared by with the work of the siblings, in ascending order."""
        if self._ranks is None:
            if self._is_long:
                self._ranks = Along(len(self.entries), self._rank_at(place, among))
            else:
                self._ranks = self._rank(place, among)
        return self._ranks

    def _rank_at(self, place: int, among: Contender) -> Callable[[int], Rank]:
        """Return what gives the rank of the entry at a place, one by one what ``_rank`` gives for all."""
        if len(among.children) == 1:
            return lambda at: (0, 0, 0, 0, place, at)
        mine, used, lifted, oldest_from = self.contender, self.used, self.lifted, self.oldest_from
        bits, entitled, scale, base = among.rank_bits, mine.entitled, mine.scale, mine.base
        tier, below = int(mine.tier(mine.running_milli, 0, waits=False)), int(Tier.BELOW_FLOOR)
        has_ratio = bool(mine.share and entitled)

        def rank(at: int) -> Rank:
            amount = used[at]
            ratio = (amount << bits) // entitled if has_ratio else 0
            surplus = amount * scale - base
            return below if at < lifted else tier, ratio, surplus, oldest_from(at), place, at

        return rank

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
        ages = oldest(self.entries) if self.sums is None else self.sums.oldest_s
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

    def place_of(self, rank: Rank) -> int:
        """Return the place of the entry that has a rank among the work of the children."""
        return bisect_left(self.merged, rank)

    def spots(self, place: int) -> list[tuple["Line", int]]:
        """Return the lines below this account down to the leaf of an entry, and its place in each."""
        line, found = self, []
        while line.below:
            rank = line.merged[place]
            line, place = line.below[rank[SIBLING]], rank[PLACE]
            found.append((line, place))
        return found

    def spot(self, place: int, level: int) -> tuple["Line", int]:
        """Return one of ``spots``, counted from the root's."""
        line = self
        for _ in range(level + 1):
            rank = line.merged[place]
            line, place = line.below[rank[SIBLING]], rank[PLACE]
        return line, place

    def of_leaves(self, own: "Callable[[Line], Sequence[T]]") -> Sequence[T]:
        """Return what each entry has in its leaf's line, of a sequence that each of these has."""
        if not self.below:
            return own(self)
        found = {place: line.of_leaves(own) for place, line in self.below.items()}
        return [found[rank[SIBLING]][rank[PLACE]] for rank in self.merged]

    def beside(self, place: int) -> list[Iterable["Line"]]:
        """Return for each line on that way those of the siblings that have work, its own included."""
        found: list[Iterable[Line]] = []
        line = self
        while line.below:
            rank = line.merged[place]
            found.append(line.below.values())
            line, place = line.below[rank[SIBLING]], rank[PLACE]
        return found

    def leaf(self, place: int) -> tuple["Line", int]:
        """Return the leaf of an entry, and its place there."""
        line = self
        while line.below:
            rank = line.merged[place]
            line, place = line.below[rank[SIBLING]], rank[PLACE]
        return line, place


class Along(Sequence[T]):
    """Values by place, each worked out when it is asked for.

    Args:
        count: How many there are.
        at: Gives the value at a place.
    """

    __slots__ = ("_at", "_count", "_known")

    def __init__(self, count: int, at: Callable[[int], T]) -> None:
        self._count = count
        self._at = at
        self._known: dict[int, T] = {}

    def __len__(self) -> int:
        """Return how many there are."""
        return self._count

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        """Return the value at a place, or those at some places."""
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(self._count))]
        if not 0 <= place < self._count:
            raise IndexError(place)
        found = self._known.get(place)
        if found is None:
            found = self._known[place] = self._at(place)
        return found


def firsts(kinds: Sequence[Kind], start: int) -> dict[Kind, int]:
    """Return the first place of every kind, of those that are counted from a start on."""
    backwards = range(start + len(kinds) - 1, start - 1, -1)
    return dict(zip(reversed(kinds), backwards, strict=True))


def oldest(entries: Sequence[Entry]) -> list[int]:
    """Return since when the oldest is eligible of each and those behind it."""
    return list(accumulate([entry[ELIGIBLE] for entry in reversed(entries)], min))[::-1]


def line_up(
    top: Contender,
    line_of: Callable[[Contender], Line],
    merged: "Callable[[Contender, Mapping[int, Line]], Line] | None" = None,
) -> Line:
    """Return the line of an account from those of the leaves.

    Args:
        top: The account.
        line_of: Gives the line of a leaf.
        merged: What makes a line from those of the children; ``merge`` unless given.
    """
    if not top.children:
        return line_of(top)
    below = {place: line_up(child, line_of, merged) for place, child in enumerate(top.children)}
    return (merged or merge)(top, {place: line for place, line in below.items() if line.entries})


def merge(top: Contender, below: Mapping[int, Line]) -> Line:
    """Return the line of an account from the lines of its children."""
    if len(below) == 1:
        ((place, line),) = below.items()
        return Line(top, line.entries, below, line.ranks(place, top), line.sums)
    merged = sorted(chain.from_iterable(line.ranks(place, top) for place, line in below.items()))
    entries = {place: line.entries for place, line in below.items()}
    return Line(top, [entries[rank[SIBLING]][rank[PLACE]] for rank in merged], below, merged)
