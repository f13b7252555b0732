"""A walk that passes over those who can change nothing, and decides what a full walk would.

Three things alone change what others get: somebody starts, somebody gets or gives up a reservation, somebody becomes
the head of a size class. A turn can do none of them when

- its size class has a head, or its work is unallocated, and there is no room for it now, nor soon for funded work; or
  that was so for somebody who asks for the same (class of work, GPUs, model, minimum runtime), and nothing has been
  given back since: starts, promises and bound reservations only take room away;
- and it holds no reservation;
- and no run of its own account of lower priority may leave for it where that helps, or somebody of its account asked
  for the same with the same priority before, in vain.

So the walk goes, in the order of the queue, to the first of all who ask for the same, and, where runs of an account
may leave for its own work, to the first of that account too; to who holds a reservation; and to whom it is asked about.
It looks at those of them who could change something. After a start or a new head the next of the same kind follows.
When room is given back (a reservation is given up, runs are told to leave), it goes anew to the first of every kind
from there on.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gpuledger.policy.blocks import Blocks, Spot
from gpuledger.policy.decisions import Walk
from gpuledger.policy.fair_share import Turn
from gpuledger.policy.keeping import kept_for
from gpuledger.policy.lines import ASK, WORKLOAD, Ask, Entry, Rank, firsts
from gpuledger.policy.outcomes import Decision, Shared
from gpuledger.policy.preemption import Preemption
from gpuledger.policy.state import ClusterState, PendingWorkload, PolicyConfig, WorkClass
from gpuledger.policy.yard import SizeClass, Yard

_Kind = tuple[int, str | None, int]
"""Milli-GPU, model and priority: what those of one account who want its runs are told apart by."""


class SparseWalk:
    """One class of work, walked through where something could change.

    Args:
        walk: What decides.
        blocks: The queue of the class.
        before: How many are before the whole class.
        named: Who is looked at in any case, by leaf: holders of reservations, and whom it is asked about.
        own: Lowest priority of the runs that may leave for their own account's work, by leaf.
    """

    def __init__(
        self,
        walk: Walk,
        blocks: Blocks,
        before: int,
        named: Iterable[Spot],
        own: dict[str, int],
    ) -> None:
        self._walk = walk
        self._blocks = blocks
        self._before = before
        self._named = {(spot.block, spot.place) for spot in named}
        self._own = {leaf: least for leaf, least in own.items() if self._asks_for_more(leaf, least)}
        self._kinds = set[Ask]().union(*(line.kinds for line in blocks.lines.values()))
        self._own_kinds: dict[str, list[_Kind]] = {}
        """What is asked for by those of these accounts whose priority is above that of some of its runs."""
        self._failed: set[Ask] = set()
        """Who finds nothing, until room is given back."""
        self._roomless: set[Ask] = set()
        """Who has no room, until some is given back; the first of a size class may find victims."""
        self._ahead: list[Spot] = list(named)
        self._queued = set(self._named)

    def decide(self) -> Iterator[Decision | Shared]:
        """Yield the decisions of those that were looked at in any case, or that changed or hold something."""
        heapq.heapify(self._ahead)
        self._look_from(None)
        while self._ahead:
            spot = heapq.heappop(self._ahead)
            entry = self._blocks.entry(spot)
            is_named = (spot.block, spot.place) in self._named
            if not is_named and self._is_in_vain(entry[ASK]) and not self._may_take_own(spot, entry):
                continue
            decision = self._decide(spot, entry)
            if is_named or isinstance(decision, Decision):
                yield decision

    def _is_in_vain(self, ask: Ask) -> bool:
        if ask not in self._failed:
            if self._walk.headless(ask) is not None or not self._has_no_room(ask):
                return False
            self._failed.add(ask)
        return True

    def _decide(self, spot: Spot, entry: Entry) -> Decision | Shared:
        book, yard = self._walk.book, self._walk.yard
        name = entry[WORKLOAD].workload
        held, leaving = book.kept.get(name), len(yard.leaving)
        decision = self._walk.decide_one(turn_at(self._blocks, spot, self._before))
        if isinstance(decision, Shared):
            self._failed.add(entry[ASK])
        if len(yard.leaving) > leaving or (held is not None and book.kept.get(name) != held):
            self._failed.clear()
            self._roomless.clear()
            self._look_from(spot.rank)
        elif isinstance(decision, Decision):
            self._look_further(spot, entry)
        return decision

    def _asks_for_more(self, leaf: str, priority: int) -> bool:
        """Say whether work of a higher priority waits in an account."""
        line = self._blocks.leaves.get(leaf)
        return line is not None and line.entries[0][0] < -priority

    def _may_take_own(self, spot: Spot, entry: Entry) -> bool:
        if not self._own:
            return False
        leaf, _ = self._blocks.lines[spot.block].leaf(spot.place)
        least = self._own.get(leaf.contender.path)
        return least is not None and least < -entry[0]

    def _look_at(self, spot: Spot) -> None:
        if (spot.block, spot.place) not in self._queued:
            self._queued.add((spot.block, spot.place))
            heapq.heappush(self._ahead, spot)

    def _look_further(self, spot: Spot, entry: Entry) -> None:
        """Look at the next that could find what it found: room, being a head, or the same runs of its account."""
        ask = entry[ASK]
        if self._walk.headless(ask) is not None:
            kinds = self._blocks.lines[spot.block].kinds
            self._look_in(spot.block, spot.place + 1, self._groups(kinds))
        elif not self._has_no_room(ask):
            following = self._blocks.lines[spot.block].first_of([ask], spot.place + 1)
            if following is not None:
                self._look_at(self._blocks.spot(spot.block, following))
        if self._may_take_own(spot, entry):
            leaf, place = self._blocks.lines[spot.block].leaf(spot.place)
            for at in range(place + 1, len(leaf.entries)):
                if _kind(leaf.entries[at]) == _kind(entry):
                    self._look_at(self._blocks.climb(leaf.contender.path, at))
                    return

    def _look_from(self, rank: Rank | None) -> None:
        """Look at the first of every kind behind a rank."""
        groups = self._groups(self._kinds)
        for block in self._blocks.lines if groups else ():
            self._look_in(block, 0 if rank is None else self._blocks.behind(block, rank), groups)
        for leaf in self._own:
            self._look_at_own(leaf, rank)

    def _groups(self, kinds: Iterable[Ask]) -> list[list[Ask]]:
        """Return of whom the first may find something: who asks for the same and has room, or may head a size class."""
        roomy: list[list[Ask]] = []
        heads: dict[SizeClass, list[Ask]] = {}
        for ask in kinds:
            if ask in self._failed:
                continue
            size_class = self._walk.headless(ask)
            if not self._has_no_room(ask):
                roomy.append([ask])
            elif size_class is None:
                self._failed.add(ask)
            if size_class is not None:
                heads.setdefault(size_class, []).append(ask)
        return [*roomy, *heads.values()]

    def _look_in(self, block: int, start: int, groups: Iterable[list[Ask]]) -> None:
        """Look at the first of each group in a block, from a place on."""
        line = self._blocks.lines[block]
        for asks in groups:
            place = line.first_of(asks, start)
            if place is not None:
                self._look_at(self._blocks.spot(block, place))

    def _has_no_room(self, ask: Ask) -> bool:
        """Say so; where the shortest work of a size has no room, none of that size has."""
        if ask in self._roomless:
            return True
        klass, gpus_milli, gpu_model, _ = ask
        shortest = (klass, gpus_milli, gpu_model, 0)
        if shortest not in self._roomless:
            if self._walk.has_no_room(shortest):
                self._roomless.add(shortest)
            elif not self._walk.has_no_room(ask):
                return False
        self._roomless.add(ask)
        return True

    def _look_at_own(self, leaf: str, rank: Rank | None) -> None:
        """Look at the first of every kind in an account whose priority is above that of some of its runs."""
        if leaf not in self._own_kinds:
            entries = self._blocks.leaves[leaf].entries
            above = bisect_left(entries, -self._own[leaf], key=lambda entry: entry[0])
            self._own_kinds[leaf] = [_kind(entry) for entry in entries[:above]]
        kinds, start = self._own_kinds[leaf], 0
        if rank is not None:
            start = bisect_right(range(len(kinds)), rank, key=lambda at: self._blocks.climb(leaf, at).rank)
        for place in firsts(kinds[start:], start).values():
            gpus_milli, gpu_model, priority = kinds[place]
            if self._walk.preemption.own_could_help(leaf, gpus_milli, gpu_model, -priority):
                self._look_at(self._blocks.climb(leaf, place))


class Unfunded(NamedTuple):
    """Unallocated work whose order is worked out where some of it has room: it takes from nobody, and holds nothing.

    Args:
        kinds: What is asked for.
        ordered: Makes the queue.
    """

    kinds: Collection[Ask]
    ordered: Callable[[], Blocks]


def walk_sparsely(
    queues: Mapping[WorkClass, "Blocks | Unfunded"],
    named: Mapping[WorkClass, Sequence[Spot]],
    state: ClusterState,
    yard: Yard,
    preemption: Preemption,
    config: PolicyConfig,
    *,
    has_words: bool = True,
) -> tuple[Walk, list[Decision | Shared]]:
    """Walk where something could change, funded work first; return the walk, and what it decided.

    Args:
        queues: Who takes a place in the queue, by class; of funded work it is there already.
        named: Who is looked at in any case; holders of reservations are among them.
        state: The cluster.
        yard: Its hosts.
        preemption: The search for victims.
        config: The knobs.
        has_words: Whether decisions have sentences and figures.
    """
    lines_of = {klass: queue for klass, queue in queues.items() if isinstance(queue, Blocks)}
    before = {"allocated": 0, "unallocated": len(lines_of["allocated"])}
    turns = [
        turn_at(lines_of[klass], spot, before[klass]) for klass, spots in named.items() for spot in spots
    ]
    walk = Walk(turns, state, yard, preemption, config, has_words=has_words)
    decided: list[Decision | Shared] = []
    for klass, queue in queues.items():
        if isinstance(queue, Unfunded) and all(map(walk.has_no_room, queue.kinds)):
            continue
        blocks = queue.ordered() if isinstance(queue, Unfunded) else queue
        if not blocks.lines:
            continue
        spots, own = list(named.get(klass, ())), {}
        if klass == "allocated":
            own = preemption.least_of_own()
        elif (keeper := kept_for(blocks.leaves.values(), state.at_s, config)) is not None:
            walk.keep_for(keeper)
            spots += _spot_of(keeper, blocks, spots)
        decided += SparseWalk(walk, blocks, before[klass], spots, own).decide()
    decided += walk.leaving()
    return walk, decided


def _spot_of(keeper: PendingWorkload, blocks: Blocks, named: Sequence[Spot]) -> list[Spot]:
    """Return where the first of an account stands, unless it is named already."""
    leaf = next(path for path, line in blocks.leaves.items() if line.entries[0][WORKLOAD] is keeper)
    spot = blocks.climb(leaf, 0)
    return [] if spot in named else [spot]


def turn_at(blocks: Blocks, spot: Spot, before: int) -> Turn:
    """Return the turn of a spot in the queue of its class, which so many are before."""
    return Turn(blocks.entry(spot), blocks, blocks.place_of(spot), before)


def _kind(entry: Entry) -> _Kind:
    _, gpus_milli, gpu_model, _ = entry[ASK]
    return gpus_milli, gpu_model, entry[0]
