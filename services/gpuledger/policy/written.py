"""The decisions of a cycle, written down once: for the digest, for who keeps them, and counted."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, repeat
from operator import add, attrgetter, eq
from typing import Any

from gpuledger.kernel.collecting import without_cycles
from gpuledger.ledger import cycle_decisions
from gpuledger.policy import pieces
from gpuledger.policy.explain import Ahead, Kept, ratios_millionths
from gpuledger.policy.lines import Line
from gpuledger.policy.outcomes import Action, Decision, Shared
from gpuledger.policy.outlook import Outlook
from gpuledger.policy.pieces import FORM, Placed, View
from gpuledger.policy.published import decision_json

PIECE = 256
"""How many decisions lie in a piece, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Every decision of a cycle, as it is kept.

    Args:
        pieces: In their order; all of a workload lie in one.
        digest: Of all of them, as it is journalled.
        count: How many there are.
        waiting_milli: Milli-GPU -> how many wait for so many.
    """

    pieces: tuple[bytes, ...]
    digest: str
    count: int
    waiting_milli: Mapping[int, int]

    def read(self) -> list[dict[str, Any]]:
        """Return them under their published keys, in their order; sentences are made now."""
        return pieces.read_all(self.pieces)


def write(decisions: Sequence[Decision | Shared], *, form: int = FORM) -> Written:
    """Write the decisions of a cycle down.

    Args:
        decisions: All of them, in their order.
        form: In which form their digest is taken: that of a recorded cycle, where it is computed again.
    """
    of = -(-len(decisions) // PIECE) or 1
    with without_cycles():  # nothing that is kept refers to itself
        table = _Table(decisions)
        rows: list[list[bytes]] = [[] for _ in range(of)]
        for n, row in zip(cycle_decisions.pieces_of(table.workloads, of), table.rows(), strict=True):
            rows[n].append(row)
        whole: list[list[Placed]] = [[] for _ in range(of)]
        for placed in table.whole:
            whole[cycle_decisions.piece_of(placed[1]["workload"], of)].append(placed)
        written = tuple(map(table.piece, rows, whole))
        if form == pieces.WITH_SENTENCES:
            digest = cycle_decisions.digest(pieces.read_all(written))
        else:
            digest = cycle_decisions.digest_of(written)
    return Written(pieces=written, digest=digest, count=len(decisions), waiting_milli=table.waiting_milli())


class _Table:
    """All decisions of a cycle: those who share an outlook as columns, the others whole.

    It is filled in their order, column by column: what they are made of lies in the memory one after the other, and
    takes three times as long to be read in another order.
    """

    def __init__(self, decisions: Sequence[Decision | Shared]) -> None:
        shared = [one for one in decisions if isinstance(one, Shared)]
        self._places = [place for place, one in enumerate(decisions) if isinstance(one, Shared)]
        queues = [(queue, list(following)) for queue, following in groupby(shared, key=attrgetter("line"))]
        if not _stand_in_order(self._places, queues):
            shared, self._places, queues = [], [], []
        known = set(self._places)
        self.whole: list[Placed] = [
            (place, dict(decision_json(one))) for place, one in enumerate(decisions) if place not in known
        ]
        self.workloads = [one.workload for one in shared]
        self._blocking: dict[Kept, int] = {}
        self._heads: dict[Ahead, int] = {}
        self._outlooks = [one.outlook for one in shared]
        self._views = self._seen()
        self._accounts: list[str] = []
        self._ratios_ppm: list[int | None] = []
        self._partings_ppm: list[int | None] = []
        self._are_below: list[bool] = []
        self._standings = _Standings()
        for queue, following in queues:
            self._fill(queue, [one.place for one in following])

    def rows(self) -> list[bytes]:
        """Return those who share an outlook, each as it is kept."""
        columns = (
            self._places, self.workloads, self._accounts, self._views,
            self._ratios_ppm, self._partings_ppm, self._are_below,
        )  # fmt: skip
        return pieces.encode_rows(list(zip(*columns, strict=True)))

    def piece(self, rows: Sequence[bytes], whole: Sequence[Placed]) -> bytes:
        """Return a piece of some of them, and of some decisions that are kept whole."""
        return pieces.encode(rows, whole, list(self._blocking), list(self._heads))

    def waiting_milli(self) -> Mapping[int, int]:
        """Return milli-GPU -> how many wait for so many."""
        found = Counter(view.gpus_milli for view in self._views)
        found.update(
            one["numbers"].get("gpus_milli", 0) for _, one in self.whole if one["action"] == Action.WAIT
        )
        return found

    def _seen(self) -> list[View]:
        """Return the view of each of the outlooks; equal ones are the same."""
        blocking, heads = self._blocking, self._heads
        found: dict[View, View] = {}
        views: dict[Outlook, View] = {}
        for outlook in dict.fromkeys(self._outlooks):
            view = View(
                outlook.gpus_milli,
                outlook.free_milli,
                None if outlook.blocking is None else blocking.setdefault(outlook.blocking, len(blocking)),
                None if outlook.ahead is None else heads.setdefault(outlook.ahead, len(heads)),
            )
            views[outlook] = found.setdefault(view, view)
        return [views[outlook] for outlook in self._outlooks]

    def _fill(self, queue: Line, places: Sequence[int]) -> None:
        """Go on with those of a class."""
        begun, count = len(self._accounts), len(places)
        of_queue = queue.of_leaves(lambda leaf: [leaf.contender.path] * len(leaf.entries))
        accounts = [of_queue[place] for place in places]
        self._accounts += accounts
        outlooks = self._outlooks[begun : begun + count]
        if not outlooks[0].is_funded:
            self._ratios_ppm += repeat(None, count)
            self._partings_ppm += repeat(None, count)
            self._are_below += [False] * count
            return
        ratios_ppm = queue.of_leaves(lambda leaf: self._standings[leaf][0])
        self._ratios_ppm += [ratios_ppm[place] for place in places]
        levels_of = _levels_of(dict.fromkeys(outlooks))
        for place, account, levels in zip(
            places, accounts, map(levels_of.__getitem__, outlooks), strict=True
        ):
            if levels is None:
                self._partings_ppm.append(None)
                self._are_below.append(False)
            else:
                line, at = queue.spot(place, levels[account])
                ratios, lifted = self._standings[line]
                self._partings_ppm.append(ratios[at])
                self._are_below.append(at < lifted)


class _Standings(dict[Line, tuple[Sequence[int | None], int]]):
    """Line -> the ratio of its account in millionths before each entry, and how many of them its floor lifts."""

    def __missing__(self, line: Line) -> tuple[Sequence[int | None], int]:
        mine = line.contender
        found = self[line] = ratios_millionths(line.used, mine.scale, mine.entitled), line.lifted
        return found


class _Levels(dict[str, int]):
    """Leaf -> the level at which its path and that of a head part."""

    def __init__(self, ahead: Ahead) -> None:
        super().__init__()
        self._ahead = ahead

    def __missing__(self, account: str) -> int:
        level = self[account] = self._ahead.level(account)
        return level


def _stand_in_order(places: Sequence[int], queues: Iterable[tuple[Line, Sequence[Shared]]]) -> bool:
    """Say whether each has the place among all decisions that it has among the turns, as in a full cycle."""
    wanted = chain.from_iterable(
        map(add, map(attrgetter("place"), following), repeat(following[0].position - following[0].place - 1))
        for _, following in queues
    )
    return all(isinstance(queue, Line) for queue, _ in queues) and all(map(eq, places, wanted))


def _levels_of(outlooks: Iterable[Outlook]) -> dict[Outlook, _Levels | None]:
    """Return the levels of the head of which each tells; None where it tells of none."""
    found: dict[Ahead, _Levels] = {}
    return {
        outlook: None
        if outlook.ahead is None or outlook.blocking is not None
        else found.setdefault(outlook.ahead, _Levels(outlook.ahead))
        for outlook in outlooks
    }
