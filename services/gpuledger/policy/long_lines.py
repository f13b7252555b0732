"""A queue that is looked up where it is asked for, and never merged: for long ones of which little is looked at.

Each of the children's lines is in ascending order of what the merge compares. So whoever stands somewhere in one of
them has before it, of each other line, those that a search by halves finds there; these numbers together are its
place. From a place the way back is a search for the work that has so many before it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from gpuledger.policy import lines
from gpuledger.policy.contenders import Contender
from gpuledger.policy.lines import GPUS_MILLI, Along, Ask, Entry, Line, Rank, merge

_Cut = tuple[int, ...]
"""How many of each child's work are before something."""


class LongRanks(Along[Rank]):
    """The ranks of a line that is not merged.

    Args:
        line: It.
        at: Gives the rank of the work at a place.
    """

    __slots__ = ("_line",)

    def __init__(self, line: "LongLine", at: Callable[[int], Rank]) -> None:
        super().__init__(len(line.entries), at)
        self._line = line

    def before(self, rank: Rank) -> int:
        """Return how many are before a rank."""
        return self._line.count(lambda place, _: self[place] < rank)

    def up_to(self, rank: Rank) -> int:
        """Return how many are before a rank or have it."""
        return self._line.count(lambda place, _: self[place] <= rank)


class LongLine(Line):
    """An account and the work below it.

    Args:
        contender: How the account stands before any of it starts.
        below: The children that have work, by their place among the siblings.
    """

    __slots__ = ("_cuts", "_kids", "_lifted")

    def __init__(self, contender: Contender, below: Mapping[int, Line]) -> None:
        self._kids = [(line, line.ranks(place, contender)) for place, line in below.items()]
        count = sum(len(line.entries) for line in below.values())
        super().__init__(contender, Along(count, self._entry), below, Along(count, self._merged))
        self._cuts: dict[int, tuple[_Cut, int]] = {}
        """By place: what is before it of each child, and of which child the work there is."""
        self._lifted: int | None = None

    def of(self, contender: Contender) -> Line:
        """Return the same work where the account stands otherwise."""
        return self if contender.stands_as(self.contender) else LongLine(contender, self.below)

    @property
    def kinds(self) -> Collection[Ask]:
        """What is asked for."""
        return set[Ask]().union(*(line.kinds for line, _ in self._kids))

    def first_of(self, asks: Iterable[Ask], start: int) -> int | None:
        """Return the first place, from one on, of those who ask for one of these; None without any."""
        if start >= len(self.entries):
            return None
        asks, cut = list(asks), self._cut(start)[0] if start else (0,) * len(self._kids)
        found: list[Rank] = []
        for (line, ranks), before in zip(self._kids, cut, strict=True):
            place = line.first_of(asks, before)
            if place is not None:
                found.append(ranks[place])
        return self.place_of(min(found)) if found else None

    def place_of(self, rank: Rank) -> int:
        """Return the place of the work that has a rank among that of the children."""
        kid = list(self.below).index(rank[lines.SIBLING])
        cut = tuple([
            rank[lines.PLACE] if n == kid else before(ranks, rank) for n, (_, ranks) in enumerate(self._kids)
        ])  # fmt: skip
        place = sum(cut)
        self._cuts[place] = cut, kid
        return place

    def count(self, holds: Callable[[int, Entry], bool]) -> int:
        """Return for how many of the first something holds that holds for none behind them.

        Args:
            holds: Told a place and the work there.
        """
        low, high = [0] * len(self._kids), [len(line.entries) for line, _ in self._kids]
        while True:
            left = [end - start for start, end in zip(low, high, strict=True)]
            most = max(left)
            if not most:
                return sum(low)
            kid = left.index(most)
            line, ranks = self._kids[kid]
            at = (low[kid] + high[kid]) // 2
            cut = self._before(ranks[at], kid, at, low, high)
            place = sum(cut)
            self._cuts[place] = tuple(cut), kid
            if holds(place, line.entries[at]):
                cut[kid] += 1
                low = cut
            else:
                high = cut

    @property
    def used(self) -> Sequence[int]:
        """Use before each of the work starts, and after the last."""
        if self._used is None:
            mine = self.contender.used
            self._used = Along(len(self.entries) + 1, lambda place: mine + self._held_before(place))
        return self._used

    @property
    def running(self) -> Sequence[int]:
        """Running GPUs before each of the work starts, and after the last."""
        if self._running is None:
            mine = self.contender.running_milli
            self._running = Along(len(self.entries) + 1, lambda place: mine + self._milli_before(place))
        return self._running

    def oldest_from(self, place: int) -> int:
        """Return since when the oldest is eligible of the work at a place and behind it."""
        cut = self._cut(place)[0]
        return min(
            line.oldest_from(at)
            for (line, _), at in zip(self._kids, cut, strict=True)
            if at < len(line.entries)
        )

    def ranks(self, place: int, among: Contender) -> Sequence[Rank]:
        """Return what each is compared by with the work of the siblings, in ascending order."""
        if self._ranks is None:
            self._ranks = LongRanks(self, self._rank_at(place, among))
        return self._ranks

    @property
    def lifted(self) -> int:
        """For how many of the first the floor counts."""
        mine = self.contender
        if self._lifted is None:
            self._lifted = (
                self.count(lambda place, entry: mine.is_lifted(self.running[place], entry[GPUS_MILLI]))
                if mine.running_milli < mine.floor_milli
                else 0
            )
        return self._lifted

    def _entry(self, place: int) -> Entry:
        cut, kid = self._cut(place)
        return self._kids[kid][0].entries[cut[kid]]

    def _merged(self, place: int) -> Rank:
        cut, kid = self._cut(place)
        return self._kids[kid][1][cut[kid]]

    def _held_before(self, place: int) -> int:
        cut = self._cut_at(place)
        return sum([
            line.used[at] - line.contender.used for (line, _), at in zip(self._kids, cut, strict=True)
        ])  # fmt: skip

    def _milli_before(self, place: int) -> int:
        cut = self._cut_at(place)
        return sum([
            line.running[at] - line.contender.running_milli
            for (line, _), at in zip(self._kids, cut, strict=True)
        ])  # fmt: skip

    def _cut_at(self, place: int) -> _Cut:
        """Return what is before a place of each child; before the end that is everything."""
        if place == len(self.entries):
            return tuple([len(line.entries) for line, _ in self._kids])
        return self._cut(place)[0]

    def _cut(self, place: int) -> tuple[_Cut, int]:
        """Return what is before a place of each child, and of which child the work there is."""
        if place not in self._cuts:
            self.count(lambda at, _: at < place)  # it looks at the place on its way
        return self._cuts[place]

    def _before(self, rank: Rank, kid: int, at: int, low: Sequence[int], high: Sequence[int]) -> list[int]:
        """Return how many of each child are before a rank, of which bounds are known."""
        cut = [
            before(ranks, rank, start, end)
            for (_, ranks), start, end in zip(self._kids, low, high, strict=True)
        ]
        cut[kid] = at
        return cut


def before(ranks: Sequence[Rank], rank: Rank, low: int = 0, high: int | None = None) -> int:
    """Return how many of ranks in ascending order are before one.

    Args:
        ranks: They.
        rank: The one.
        low: So many are, as is known.
        high: No more are.
    """
    if isinstance(ranks, LongRanks):
        return ranks.before(rank)
    return bisect_left(ranks, rank, low, len(ranks) if high is None else high)


def up_to(ranks: Sequence[Rank], rank: Rank) -> int:
    """Return how many of ranks in ascending order are before one, or are it."""
    return ranks.up_to(rank) if isinstance(ranks, LongRanks) else bisect_right(ranks, rank)


def merge_where_short(top: Contender, below: Mapping[int, Line]) -> Line:
    """Return the line of an account from the lines of its children, merged unless it is long."""
    is_kept = len(below) == 1 and not any(isinstance(line, LongLine) for line in below.values())
    if is_kept or sum(len(line.entries) for line in below.values()) <= lines.LONG:
        return merge(top, below)
    return LongLine(top, below)
