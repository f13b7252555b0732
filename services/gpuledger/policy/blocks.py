"""The queue of a class of work, cut where the tree first branches, so that one workload more is cheap.

The whole queue is the blocks' lines merged. To compare two workloads, or to say at which place one stands, the merged
queue is not needed: every block's line is sorted by what the merge compares. So a workload more changes the lines from
its leaf up to its block, and nothing else.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from gpuledger.kernel.accounts import lineage
from gpuledger.policy.contenders import Contender, Standing
from gpuledger.policy.lines import GPUS_MILLI, NAME, Entry, Line, Rank, line_up, merge
from gpuledger.policy.long_lines import before, merge_where_short, up_to


class Spot(NamedTuple):
    """Where a workload stands.

    Args:
        rank: What it is compared by with the other blocks' work.
        block: Its block.
        place: Its place in the line of the block.
    """

    rank: Rank
    block: int
    place: int


class Blocks:
    """The lines of the siblings at which the tree first branches.

    Args:
        above: The accounts above them, the virtual root left out: each is the only one of its level.
        among: The account whose children they are.
        lines: Those that have work, by their place among the siblings.
        ways: The places among siblings on the way to each leaf, the block's first; filled as they are needed.
    """

    def __init__(
        self,
        above: tuple[Contender, ...],
        among: Contender,
        lines: Mapping[int, Line],
        ways: dict[str, tuple[int, ...]],
    ) -> None:
        self._above = above
        self._among = among
        self._ways = ways
        self.lines = lines
        self._width = len(among.children)
        self.ranks = {block: line.ranks(block, among) for block, line in lines.items()}

    def __len__(self) -> int:
        """Return how much work there is."""
        return sum(len(line.entries) for line in self.lines.values())

    def look_over(self) -> None:
        """Note the first of every kind, which a sparse walk asks for first."""
        for line in self.lines.values():
            assert line.kinds  # noqa: S101 - a line of a block has work

    @cached_property
    def leaves(self) -> dict[str, Line]:
        """The lines of the leaves that have work."""
        found, lines = dict[str, Line](), list(self.lines.values())
        while lines:
            line = lines.pop()
            if line.below:
                lines += line.below.values()
            else:
                found[line.contender.path] = line
        return found

    def entry(self, spot: Spot) -> Entry:
        """Return the work of a spot."""
        return self.lines[spot.block].entries[spot.place]

    def spot(self, block: int, place: int) -> Spot:
        """Return where the work at a place of a block's line stands."""
        return Spot(self.ranks[block][place], block, place)

    def behind(self, block: int, rank: Rank) -> int:
        """Return the first place of a block's line that is behind a rank."""
        return up_to(self.ranks[block], rank)

    def place_of(self, spot: Spot) -> int:
        """Return the number by which this queue knows a spot."""
        return spot.place * self._width + spot.block

    def rank_of(self, place: int) -> int:
        """Return how many are before it."""
        return sum(self._before(place).values())

    def spots(self, place: int) -> list[tuple[Line, int]]:
        """Return the lines from its root down to its leaf, and its place in each."""
        at, block = divmod(place, self._width)
        above: list[tuple[Line, int]] = [(_Above(contender, self), place) for contender in self._above]
        return [*above, (self.lines[block], at), *self.lines[block].spots(at)]

    def beside(self, place: int) -> list[Iterable[Line]]:
        """Return for each of them the lines of its siblings that have work, its own included."""
        at, block = divmod(place, self._width)
        return [*(() for _ in self._above), self.lines.values(), *self.lines[block].beside(at)]

    def leaf(self, place: int) -> tuple[Line, int]:
        """Return the last of them."""
        at, block = divmod(place, self._width)
        return self.lines[block].leaf(at)

    def gang_milli(self, place: int) -> int:
        """Return the milli-GPU of the work at a place."""
        at, block = divmod(place, self._width)
        return self.lines[block].entries[at][GPUS_MILLI]

    def counted(self, place: int) -> tuple[int, int]:
        """Return the expected hold and the milli-GPU of all work before it."""
        used = running = 0
        for block, count in self._before(place).items():
            line = self.lines[block]
            used += line.used[count] - line.contender.used
            running += line.running[count] - line.contender.running_milli
        return used, running

    def with_entry(self, leaf: str, entry: Entry) -> "Blocks":
        """Return the blocks with one workload more at a leaf."""
        block, *way = self._way(leaf)
        line = _insert(self._among.children[block], self.lines.get(block), way, entry)
        return Blocks(self._above, self._among, {**self.lines, block: line}, self._ways)

    def moved(self, top: Contender, without: Mapping[str, Collection[str]]) -> "Blocks":
        """Return the blocks of the same accounts that stand otherwise, and without some of the work.

        Args:
            top: The virtual root, with the same accounts, shares and entitlements below it.
            without: Workloads that are left out, by leaf.
        """
        above, among = _branch(top)
        found = {place: _moved(line, among.children[place], without) for place, line in self.lines.items()}
        lines = {place: line for place, line in found.items() if line is not None}
        return Blocks(above, among, lines, self._ways)

    def find(self, leaf: str, entry: Entry) -> Spot | None:
        """Return where a workload of a leaf stands; None when it does not wait here."""
        line = self.leaf_line(leaf)
        if line is None:
            return None
        place = bisect_left(line.entries, entry)
        if place == len(line.entries) or line.entries[place] != entry:
            return None
        return self.climb(leaf, place)

    def leaf_line(self, leaf: str) -> Line | None:
        """Return the line of a leaf, if it has work."""
        block, *way = self._way(leaf)
        line = self.lines.get(block)
        for child in way:
            line = None if line is None else line.below.get(child)
        return line

    def climb(self, leaf: str, place: int) -> Spot:
        """Return where the work at a place of a leaf's line stands."""
        block, *way = self._way(leaf)
        above = [self.lines[block]]
        for child in way:
            above.append(above[-1].below[child])
        line = above.pop()
        while above:
            rank = line.ranks(way.pop(), above[-1].contender)[place]
            line = above.pop()
            place = line.place_of(rank)
        return self.spot(block, place)

    def _way(self, leaf: str) -> tuple[int, ...]:
        if leaf not in self._ways:
            on_the_way, way, contender = set(lineage(leaf)), [], self._among
            while contender.children:
                children = enumerate(contender.children)
                place, contender = next((n, child) for n, child in children if child.path in on_the_way)
                way.append(place)
            self._ways[leaf] = tuple(way)
        return self._ways[leaf]

    def _before(self, place: int) -> dict[int, int]:
        """Return how many of each block are before the work at a place."""
        at, block = divmod(place, self._width)
        rank = self.ranks[block][at]
        return {other: before(ranks, rank) for other, ranks in self.ranks.items()}


class _Above(Line):
    """An account above all blocks: every start below counts here."""

    __slots__ = ("_blocks",)

    def __init__(self, contender: Contender, blocks: Blocks) -> None:
        super().__init__(contender, ())
        self._blocks = blocks

    def standing(self, place: int) -> Standing:
        """Return how the account stands before the work at a place starts."""
        used, running = self._blocks.counted(place)
        mine, gang_milli = self.contender, self._blocks.gang_milli(place)
        tier = mine.tier(mine.running_milli + running, gang_milli)
        return Standing(mine.path, (mine.used + used) * mine.scale, mine.entitled, tier)


def cut(top: Line) -> Blocks:
    """Return the blocks of a queue.

    Args:
        top: The line of the virtual root, which has at least one account.
    """
    above, among = _branch(top.contender)
    line: Line | None = top
    for _ in above:
        line = None if line is None else line.below.get(0)
    return Blocks(above, among, {} if line is None else line.below, {})


def in_blocks(top: Contender, line_of: Callable[[Contender], Line]) -> Blocks:
    """Return the blocks of the work of the leaves, each in its order, without merging them into a queue.

    Long ones are not merged within a block either.

    Args:
        top: The virtual root.
        line_of: Gives the line of a leaf.
    """
    above, among = _branch(top)
    children = enumerate(among.children)
    found = {place: line_up(child, line_of, merge_where_short) for place, child in children}
    return Blocks(above, among, {place: line for place, line in found.items() if line.entries}, {})


def _branch(top: Contender) -> tuple[tuple[Contender, ...], Contender]:
    """Return the account below which the tree first branches, and those above it."""
    above: list[Contender] = []
    among = top
    while len(among.children) == 1 and among.children[0].children:
        among = among.children[0]
        above.append(among)
    return tuple(above), among


def _insert(contender: Contender, line: Line | None, way: list[int], entry: Entry) -> Line:
    """Return a line with one workload more, at the leaf at the end of the way."""
    if not way:
        entries = [] if line is None else list(line.entries)
        entries.insert(bisect_left(entries, entry), entry)
        return Line(contender, entries)
    below = {} if line is None else dict(line.below)
    child, *rest = way
    below[child] = _insert(contender.children[child], below.get(child), rest, entry)
    return merge(contender, below)


def _moved(line: Line, contender: Contender, without: Mapping[str, Collection[str]]) -> Line | None:
    """Return a line where its account stands otherwise and some of the work is gone; None when all of it is.

    A line of which nothing is otherwise is returned itself, with all that was worked out about it.
    """
    if not line.below:
        gone = without.get(contender.path)
        if not gone:
            return line.of(contender)
        entries = [entry for entry in line.entries if entry[NAME] not in gone]
        return Line(contender, entries) if entries else None
    found = {place: _moved(below, contender.children[place], without) for place, below in line.below.items()}
    if all(found[place] is below for place, below in line.below.items()):
        return line.of(contender)
    below = {place: one for place, one in found.items() if one is not None}
    return merge(contender, below) if below else None
