"""Which runs leave so that a gang of funded work can start: few, the right ones, and only when that suffices.

First unallocated runs. Then runs past their protection and their quantum, of accounts that exceed the asker by delta;
the two are compared where their paths part, as in the order. Where credits divide, a side that runs less than it is
issued takes from all that run more. Who of them comes first, ``leavers`` says. An account is not pushed below its
floor, but for runs that put it beyond its entitlement (``floors``). Then the asker's own runs of lower priority, past
their protection.

Candidates are added in this order until the gang fits. Where they do not suffice because floors refuse some, each of
these is tried first, too. From the last to the first, each that is not needed is left alone: no victim of what remains
could be spared. Ratios are those from the beginning of the cycle, and between two accounts GPUs move one way only: but
for reservations that are due, nobody takes from an account that took from its own in the same cycle.
"""

from collections import ChainMap, defaultdict, deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from typing import Final, NamedTuple

from gpuledger.kernel.accounts import parting
from gpuledger.policy.contenders import Standing, Tier
from gpuledger.policy.fair_share import Turn
from gpuledger.policy.floors import Floors, Taken
from gpuledger.policy.leavers import Leavers
from gpuledger.policy.placement import Placement
from gpuledger.policy.ranking import Ranking
from gpuledger.policy.runs import Runs
from gpuledger.policy.state import ClusterState, PolicyConfig, RunId, RunningRun
from gpuledger.policy.tree import Node, Tree
from gpuledger.policy.victims import Ground, Victim
from gpuledger.policy.yard import Yard

LOOKS_MAX: Final = 4000
"""How many candidates are looked at again for one gang, in other orders than theirs: some hundredths of a second."""


class _Goal(NamedTuple):
    """What victims are looked for.

    Args:
        is_met: Says whether those who are taken suffice.
        could_be_met: Says, before they are taken, whether some would; True where only taking them tells.
    """

    is_met: Callable[[], bool]
    could_be_met: Callable[[Iterable[RunningRun]], bool] = lambda _: True


_Side = tuple[str, str, str]
"""A leaf whose runs may leave for those of another; the accounts where the other's path and its own part."""


class Preemption:
    """The search for victims through one cycle.

    Args:
        ranking: The accounts as they stand at the beginning of the cycle.
        state: The cluster.
        yard: Its hosts; victims are counted as leaving there.
        config: The knobs.
        runs: The runs by account, for whoever knows them.
    """

    def __init__(
        self,
        ranking: Ranking | Tree,
        state: ClusterState,
        yard: Yard,
        config: PolicyConfig,
        runs: Runs | None = None,
    ) -> None:
        if isinstance(ranking, Tree):
            ranking = Ranking(ranking, config)
        self._tree = ranking.tree
        self._ranking = ranking
        self._yard = yard
        self._floors = Floors(ranking)
        self._is_by_issue = ranking.tree.floors_milli is not None
        runs = runs or Runs(state.running, state.at_s, config.quantum_s)
        self._leavers = Leavers(runs, ranking, state.at_s, config.victims)
        self._leaf = self._leavers.leaf
        self._beyond: dict[tuple[str, frozenset[str]], list[_Side]] = {}
        self._in_vain: set[tuple[str, int, str | None, int, bool, frozenset[str]]] = set()
        """What was looked for and not found, until somebody else finds something."""
        self._alone: dict[tuple[str, str, int], bool] = {}
        """Whether floors let a run of a leaf go, by side and milli-GPU, until somebody else leaves or stays."""
        self._moves: set[tuple[str, str]] = set()
        """(taker, giver) among the leaves."""

    def find(self, turn: Turn, *, only_own: bool = False) -> tuple[Victim, ...] | None:
        """Return a minimal set of runs without which the gang fits, counted as leaving; None when there is none.

        Args:
            turn: The gang, funded.
            only_own: Whether only runs of its own account may be taken.
        """
        gang = turn.workload
        if self._yard.fit_soon(gang.gpus_milli, gang.gpu_model) is not None:
            return ()
        claims = frozenset() if only_own else self._claims(turn)
        asked = (turn.account, gang.gpus_milli, gang.gpu_model, gang.priority, only_own, claims)
        if asked in self._in_vain:
            return None
        found = self._find(turn, claims, only_own=only_own)
        if found is None:
            self._in_vain.add(asked)
        else:
            self._in_vain.clear()
        return found

    def _find(self, turn: Turn, claims: frozenset[str], *, only_own: bool) -> tuple[Victim, ...] | None:
        """Search among those that stay so far, of accounts that took nothing from the asker's in this cycle.

        Most searches are in vain: that all together would not suffice is seen at one look, in no order. Whom a floor
        keeps though nobody else leaves is kept beside others, too.
        """
        asker, priority = turn.account, turn.workload.priority
        asked = turn.workload.gpus_milli, turn.workload.gpu_model
        leavers, yard = self._leavers, self._yard
        own = (run for run in leavers.may_leave_for_own(asker) if run.priority < priority)
        sides = [] if only_own else self._sides(asker, claims)
        if self._moves:
            sides = [side for side in sides if (side[0], asker) not in self._moves]
        others = (
            run
            for leaf, _, theirs in sides
            for run in leavers.may_leave_for_others(leaf)
            if self._may_go_alone(leaf, theirs, run.gpus_milli)
        )
        free = (
            []
            if only_own
            else [run for run in leavers.free if (self._leaf[run.account], asker) not in self._moves]
        )
        if not yard.fits_without(chain(free, others, own), *asked):
            return None
        candidates = chain(
            (Victim(run, Ground.UNALLOCATED, turn) for run in leavers.in_order(free)),
            self._exceeding(turn, sides),
            (Victim(run, Ground.OWN, turn) for run in leavers.own(asker) if run.priority < priority),
        )
        victims = [
            victim
            for victim in candidates
            if victim.run.id not in yard.leaving and yard.helps(victim.run, *asked)
        ]
        if leavers.by_work:
            victims.sort(key=partial(self._place, turn))
        goal = _Goal(lambda: yard.fit_soon(*asked) is not None, lambda runs: yard.fits_without(runs, *asked))
        return self._search(turn, victims, goal)

    def forget(self) -> None:
        """Look anew for what was not found: what somebody had reserved is given up, if only for now."""
        self._in_vain.clear()

    def clear(self, turn: Turn, placement: Placement) -> tuple[Victim, ...] | None:
        """Return a minimal set of runs that make room on these GPUs, whatever the ratios; None when there is none."""
        there = [
            run
            for run in (*self._leavers.in_order(self._leavers.free), *self._leavers.past_safety(turn.account))
            if run.id not in self._yard.leaving
            and not placement.keys().isdisjoint(self._yard.placements[run.id])
        ]
        return self._search(
            turn,
            [Victim(run, Ground.RESERVED, turn) for run in there],
            _Goal(lambda: self._yard.holds_soon(placement)),
        )

    def may_take_own(self, account: str, priority: int) -> bool:
        """Say whether runs of an account could leave for its own work of a priority."""
        least = self._leavers.least_priorities.get(self._tree.leaf_path(account))
        return least is not None and least < priority

    def least_of_own(self) -> dict[str, int]:
        """Return the lowest priority of the runs that may leave for work of their own account, by leaf."""
        return self._leavers.least_priorities

    def own_could_help(self, leaf: str, gpus_milli: int, gpu_model: str | None, priority: int) -> bool:
        """Say whether one of the runs that may leave for a gang of their own account is where it would help."""
        return any(
            run.priority < priority and self._yard.helps(run, gpus_milli, gpu_model)
            for run in self._leavers.may_leave_for_own(leaf)
        )

    def rank_for(self, turn: Turn) -> Callable[[RunningRun], tuple[int, ...]]:
        """Return who of those that may leave at once leaves first for a reservation: a key to sort by."""
        return self._leavers.rank_for(turn.account)

    def spared_by(self, turn: Turn) -> Callable[[RunningRun], bool]:
        """Return whether a run is not to leave for a gang's reservation as long as others could."""
        return self._leavers.spared_for(turn.account, partial(self._is_wider, turn))

    def exceeded_by(self, turn: Turn) -> tuple[Standing, Standing] | None:
        """Return where a gang's side stood and the sibling that it exceeds most, of those that wait for the same GPUs.

        A side is exceeded by more than delta. Where the floor counts for the gang, nobody is.
        """
        nodes, could_share = self._tree.nodes, self._yard.could_share
        for mine, siblings in zip(turn.chain, turn.line.beside(turn.place), strict=True):
            if mine.tier is Tier.BELOW_FLOOR:
                continue
            exceeded = [
                sibling.contender.path
                for sibling in siblings
                if sibling.contender.path != mine.account
                and self._ranking.exceeds(mine.account, sibling.contender.path)
                and any(could_share(turn.workload.gpu_model, model) for model in sibling.models)
            ]
            if exceeded:
                theirs = max(exceeded, key=lambda path: self._ranking.excess_rank[path])
                return _standing(nodes[mine.account]), _standing(nodes[theirs])
        return None

    def take(self, run: RunningRun) -> None:
        """Count a run as leaving."""
        self._yard.leave(run)
        self._count(run, -1)
        self._alone.clear()

    def spare(self, run: RunningRun) -> None:
        """Count a leaving run as staying."""
        self._yard.stay(run)
        self._count(run, 1)
        self._alone.clear()

    def _place(self, turn: Turn, victim: Victim) -> tuple[int, bool]:
        """Sort key: a wide gang leaves last of its group for a narrow one, for its hosts are hard to come by again."""
        is_wider = victim.ground is not Ground.OWN and self._is_wider(turn, victim.run.gpus_milli)
        return victim.ground.group, is_wider

    def _is_wider(self, turn: Turn, gpus_milli: int) -> bool:
        """Say whether so many GPUs are of a larger size class than a gang."""
        size_class = self._yard.size_class
        return size_class(gpus_milli) > size_class(turn.workload.gpus_milli)

    def _claims(self, turn: Turn) -> frozenset[str]:
        """Return the accounts on the path of the asker that run less than credits issue them."""
        if not self._is_by_issue:
            return frozenset()
        return frozenset(standing.account for standing in turn.chain if standing.tier is Tier.BELOW_FLOOR)

    def _sides(self, asker: str, claims: frozenset[str]) -> list[_Side]:
        """Return the accounts whose runs may leave for the asker's, in no order.

        They exceed it where their paths part. With a claim to what it is issued the asker takes whatever floors leave,
        which then are what others are issued.
        """
        if (asker, claims) not in self._beyond:
            self._beyond[asker, claims] = [
                (leaf, mine, theirs)
                for leaf in self._leavers.takeable_leaves
                if leaf != asker
                for mine, theirs in [parting(asker, leaf)]
                if mine in claims or self._ranking.exceeds(theirs, mine)
            ]
        return self._beyond[asker, claims]

    def _exceeding(self, turn: Turn, sides: Iterable[_Side]) -> list[Victim]:
        """Return the runs of accounts that exceed the asker, the least loss first, or the highest ratio."""
        nodes, ranking = self._tree.nodes, self._ranking
        in_order = sorted(sides, key=lambda side: ranking.excess_rank[side[0]])
        in_order.sort(key=lambda side: ranking.excess[side[2]], reverse=True)
        found: list[Victim] = []
        for leaf, mine, theirs in in_order:
            ground = Ground.RATIO if ranking.exceeds(theirs, mine) else Ground.ISSUE
            standings = _standing(nodes[mine]), _standing(nodes[theirs])
            found += (Victim(run, ground, turn, *standings) for run in self._leavers.takeable(leaf))
        if self._leavers.by_work:
            found.sort(key=lambda victim: self._leavers.least_loss_first(victim.run))
        return found

    def _search(self, turn: Turn, candidates: list[Victim], goal: _Goal) -> tuple[Victim, ...] | None:
        taken = self._enough(turn, candidates, goal)
        if taken is None:
            return None
        needed = taken[-1:]
        for victim in reversed(taken[:-1]):
            self.spare(victim.run)
            if not goal.is_met():
                self.take(victim.run)
                needed.append(victim)
        asker = turn.account
        givers = {self._leaf[victim.run.account] for victim in needed}
        self._moves.update((asker, giver) for giver in givers if giver != asker)
        return tuple(reversed(needed))

    def _enough(self, turn: Turn, candidates: list[Victim], goal: _Goal) -> list[Victim] | None:
        """Take candidates until it suffices; None when they do not, and nobody is taken."""
        if goal.is_met():
            return []
        taken, refused = self._take_until(candidates, goal)
        if taken is None and refused:
            taken = self._take_in_other_orders(turn, candidates, refused, goal)
        return taken

    def _take_until(
        self, candidates: Iterable[Victim], goal: _Goal
    ) -> tuple[list[Victim] | None, list[Victim]]:
        """Take one after the other, but for whom a floor refuses, until it suffices.

        Whom floors let go hangs on no host. Most tries are in vain, and that is seen without touching any.

        Returns:
            Those taken, None and nobody when all together do not suffice; and those of all whom a floor refuses.
        """
        possible, refused = self._let_go(candidates)
        if goal.could_be_met(victim.run for victim in possible):
            for count, victim in enumerate(possible, start=1):
                self.take(victim.run)
                if goal.is_met():
                    return possible[:count], refused
            for victim in possible:
                self.spare(victim.run)
        return None, refused

    def _let_go(self, candidates: Iterable[Victim]) -> tuple[list[Victim], list[Victim]]:
        """Return whom floors let go one after the other, and whom they refuse then; nobody is taken."""
        possible: list[Victim] = []
        refused: list[Victim] = []
        beside: Taken = {}
        for victim in candidates:
            if self._leaves_floors(victim, beside):
                self._count(victim.run, -1)
                possible.append(victim)
            else:
                refused.append(victim)
        for victim in possible:
            self._count(victim.run, 1)
        return possible, refused

    def _take_in_other_orders(
        self, turn: Turn, possible: list[Victim], refused: list[Victim], goal: _Goal
    ) -> list[Victim] | None:
        """Take those first whom a floor refused: one, then two, and so on.

        When one order does not suffice, whatever does holds somebody whom a floor refused there, for all the others
        together do not suffice. So nothing is missed, unless more than ``LOOKS_MAX`` candidates are looked at.
        """
        looks = 0
        orders: deque[tuple[Victim, ...]] = deque((victim,) for victim in refused)
        tried: set[frozenset[RunId]] = set()
        beside = self._beside(turn, possible)
        while orders and looks < LOOKS_MAX:
            first = orders.popleft()
            names = frozenset(victim.run.id for victim in first)
            if names in tried:
                continue
            tried.add(names)
            order = [*first, *(victim for victim in beside(first[0]) if victim.run.id not in names)]
            looks += len(order)
            taken, refused = self._take_until(order, goal)
            if taken is not None:
                return taken
            if not any(victim.run.id in names for victim in refused):
                orders.extend((*first, victim) for victim in refused)
        return None

    def _beside(self, turn: Turn, possible: list[Victim]) -> Callable[[Victim], Iterable[Victim]]:
        """Return who could make room together with a run: on its hosts, when the gang goes on one host."""
        if not self._yard.goes_on_one_host(turn.workload.gpus_milli):
            return lambda _: possible
        there: dict[str, dict[RunId, Victim]] = defaultdict(dict)
        for victim in possible:
            for host in self._yard.placements[victim.run.id]:
                there[host][victim.run.id] = victim
        return lambda victim: ChainMap(
            *(there[host] for host in self._yard.placements[victim.run.id])
        ).values()

    def _leaves_floors(self, victim: Victim, taken: Taken) -> bool:
        """Say whether floors let a run go beside what is taken already, and note it if they do."""
        if victim.theirs is None:
            return True
        losers = self._floors.losers(self._leaf[victim.run.account], victim.theirs.account)
        return self._floors.let_go(losers, victim.run.gpus_milli, taken)

    def _may_go_alone(self, leaf: str, side: str, gpus_milli: int) -> bool:
        """Say whether floors let a run of a leaf go that nobody else leaves with."""
        asked = leaf, side, gpus_milli
        found = self._alone.get(asked)
        if found is None:
            losers = self._floors.losers(leaf, side)
            found = self._alone[asked] = self._floors.let_go(losers, gpus_milli, {})
        return found

    def _count(self, run: RunningRun, sign: int) -> None:
        if run.klass == "allocated":
            self._floors.count(self._leaf[run.account], sign * run.gpus_milli)


def _standing(node: Node) -> Standing:
    return Standing(node.path, *node.ratio, Tier.BY_RATIO if node.share else Tier.SHARE_ZERO)
