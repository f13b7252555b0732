"""Cycles by event: what one submission changes, without deciding anew for everybody.

``prepare`` runs a full cycle and keeps what the next event is answered from. What a cycle ordered is then taken as
done: its starts run, with what they hold counted as used, and its reservations stand. Everything else (use, shares,
hosts, other runs) stays as it was told until the next full cycle.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gpuledger.kernel.accounts import own_path
from gpuledger.kernel.collecting import without_collecting, without_cycles
from gpuledger.policy.blocks import Blocks, Spot, cut
from gpuledger.policy.cycle import Cycle, decide_outside, parted, run_cycle, tree_of
from gpuledger.policy.decisions import STARTED
from gpuledger.policy.fair_share import class_of, entry_of, lines
from gpuledger.policy.outcomes import Action
from gpuledger.policy.preemption import Preemption
from gpuledger.policy.ranking import Ranking
from gpuledger.policy.sparse import walk_sparsely
from gpuledger.policy.state import (
    ClusterState,
    PendingWorkload,
    PolicyConfig,
    Reservation,
    RunningRun,
    WorkClass,
)
from gpuledger.policy.tree import Tree
from gpuledger.policy.yard import Yard

_FEW = 8
"""So many workloads that became eligible meanwhile are put into the queue one by one."""


@dataclass(frozen=True, slots=True)
class _Standing:
    """What stands between two cycles: everything that was ordered is done.

    Args:
        state: Runs, hosts and accounts; its reservations and its waiting work are those of the last full look.
        late: Work that was submitted since, by name.
        reservations: Those of the last cycle.
        tree: The accounts.
        ranking: How they stand, as far as preemption asks.
        yard: Hosts and runs, with nothing decided yet.
        queues: Who takes a place in the queue, by class.
        outside: Who does not.
        known: The accounts that are listed, run something or wait.
        names: Who waited at the last full look.
    """

    state: ClusterState
    late: dict[str, PendingWorkload]
    reservations: tuple[Reservation, ...]
    tree: Tree
    ranking: Ranking
    yard: Yard
    queues: dict[WorkClass, Blocks]
    outside: tuple[PendingWorkload, ...]
    known: frozenset[str]
    names: dict[str, PendingWorkload]

    def told(self, at_s: int) -> ClusterState:
        """Return the state that a cycle at an instant is told."""
        pending = (*self.state.pending, *self.late.values())
        return replace(self.state, at_s=at_s, pending=pending, reservations=self.reservations)

    def waits(self, name: str) -> PendingWorkload | None:
        """Return the workload that waits under a name."""
        return self.late.get(name) or self.names.get(name)

    def spots(self, names: Iterable[str], config: PolicyConfig) -> dict[WorkClass, list[Spot]]:
        """Return where those of some workloads stand that are in a queue."""
        found: dict[WorkClass, list[Spot]] = {"allocated": [], "unallocated": []}
        for name in dict.fromkeys(names):
            workload = self.waits(name)
            if workload is not None:
                klass = class_of(self.tree, workload)
                leaf = self.tree.leaf_path(workload.account)
                spot = self.queues[klass].find(leaf, entry_of(workload, klass, config))
                found[klass] += [] if spot is None else [spot]
        return found


class Prepared:
    """A cycle, and what the next event is answered from.

    Args:
        standing: What stood before the cycle, for a cycle by event; None for a full one.
        state: What the full cycle was told; None for a cycle by event.
        config: The knobs.
        cycle: The outcome.
    """

    def __init__(
        self, standing: _Standing | None, state: ClusterState | None, config: PolicyConfig, cycle: Cycle
    ) -> None:
        self._before = standing
        self._state = state
        self._standing: _Standing | None = None
        self.config = config
        self.cycle = cycle

    @property
    def state(self) -> ClusterState:
        """What the cycle was told."""
        if self._state is None:
            assert self._before is not None  # noqa: S101 - one or the other
            self._state = self._before.told(self.cycle.at_s)
        return self._state

    def settled(self) -> "Prepared":
        """Carry out what the cycle ordered, in preparation of the next event; that one does it otherwise.

        It takes about a third of a full cycle, or nothing after a cycle by event in which nobody started.
        """
        self._settle()
        return self

    @property
    def ordered(self) -> tuple[RunningRun, ...]:
        """What it and the cycles that it follows started, as it is taken to run since; none has a run's name yet."""
        return tuple(run for run in self._settle().state.running if run.run == STARTED)

    def answers(self, workload: PendingWorkload, at_s: int) -> bool:
        """Tell whether ``submitted`` decides about a workload without a full cycle."""
        return _with(self._settle(), workload, at_s, self.config) is not None

    def submitted(self, workload: PendingWorkload, at_s: int) -> tuple["Prepared", Cycle]:
        """Decide when one workload more waits.

        Args:
            workload: It; nobody waits or runs under its id.
            at_s: The instant, not before that of the cycle.

        Returns:
            What the next event is answered from, and the cycle: starts, preemptions and reservations are those of
            ``run_cycle(with_submission(carried_out(state, cycle, config), workload, at_s), config)``, and so is the
            decision of the workload, its reason included. Stated beside it is who starts, has to leave, holds a
            reservation or heads a size class; the others wait on, and the allocations are left out.

            It is a full cycle when the account of the workload was not known, or when more than a few others became
            eligible meanwhile.

        Raises:
            Refused: When the workload waits already.
        """
        standing = self._settle()
        with without_cycles():
            after = _with(standing, workload, at_s, self.config)
            if after is None:
                full = prepare(with_submission(standing.told(at_s), workload, at_s), self.config)
                return full, full.cycle
            cycle = _sparse_cycle(after, workload, at_s, self.config)
        return Prepared(after, None, self.config, cycle), cycle

    def _settle(self) -> _Standing:
        if self._standing is None:
            started = any(decision.action is Action.START for decision in self.cycle.decisions)
            if self._before is None or started:
                self._standing = _stand(carried_out(self.state, self.cycle, self.config), self.config)
            else:
                self._standing = replace(self._before, reservations=self.cycle.reservations)
        return self._standing


def prepare(state: ClusterState, config: PolicyConfig) -> Prepared:
    """Run a full cycle, and keep what the next event is answered from.

    Raises:
        Refused: When the state contradicts itself.
    """
    return Prepared(None, state, config, run_cycle(state, config))


def _stand(state: ClusterState, config: PolicyConfig) -> _Standing:
    with without_cycles():
        yard = Yard(state, config.quantum_s)
        queue, outside = parted(state, yard)
        tree = tree_of(state, queue, config)
        known = (
            *(account.account for account in state.accounts),
            *(run.account for run in state.running),
            *(workload.account for workload in state.pending),
        )
        queues = {klass: cut(line) for klass, line in lines(tree, queue, config).items()}
        for blocks in queues.values():
            blocks.look_over()
        return _Standing(
            state=state,
            late={},
            reservations=state.reservations,
            tree=tree,
            ranking=Ranking(tree, config),
            yard=yard.at(state.at_s),
            queues=queues,
            outside=tuple(outside),
            known=frozenset(known),
            names={workload.workload: workload for workload in state.pending},
        )


def _with(
    standing: _Standing, workload: PendingWorkload, at_s: int, config: PolicyConfig
) -> _Standing | None:
    """Return what stands when one workload more waits; None when that calls for a full cycle."""
    leaf = own_path(workload.account)
    leaf = leaf if leaf in standing.tree.nodes else workload.account
    is_new = workload.account not in standing.known or standing.tree.nodes[leaf].children
    if is_new or standing.waits(workload.workload) or at_s < standing.state.at_s:
        return None
    waiting = (*standing.outside, workload)
    joining = [
        w for w in waiting if w.eligible_at_s <= at_s and standing.yard.is_possible(w.gpus_milli, w.gpu_model)
    ]
    if len(joining) > _FEW:
        return None
    queues = dict(standing.queues)
    for joiner in joining:
        klass = class_of(standing.tree, joiner)
        entry = entry_of(joiner, klass, config)
        queues[klass] = queues[klass].with_entry(standing.tree.leaf_path(joiner.account), entry)
    gone = {joiner.workload for joiner in joining}
    return replace(
        standing,
        late={**standing.late, workload.workload: workload},
        queues=queues,
        outside=tuple(w for w in waiting if w.workload not in gone),
    )


def _sparse_cycle(standing: _Standing, workload: PendingWorkload, at_s: int, config: PolicyConfig) -> Cycle:
    """Run the policy where something could change, and for one workload."""
    state = replace(standing.state, at_s=at_s, accounts=(), pending=(), reservations=standing.reservations)
    yard = standing.yard.at(at_s)
    preemption = Preemption(standing.ranking, state, yard, config)
    named = standing.spots((*(kept.workload for kept in state.reservations), workload.workload), config)
    walk, decisions = walk_sparsely(standing.queues, named, state, yard, preemption, config)
    decisions += decide_outside((w for w in standing.outside if w is workload), state, yard)
    return Cycle(
        cluster=state.cluster,
        at_s=at_s,
        supply_milli=state.healthy_milli,
        allocations=(),
        decisions=tuple(decisions),
        reservations=walk.reservations(),
    )


def carried_out(state: ClusterState, cycle: Cycle, config: PolicyConfig) -> ClusterState:
    """Return the state once the starts of a cycle run and its reservations stand.

    Runs that have to leave are still there; the reservations say which. A start has no run id yet: it is empty.
    """
    starts = {decision.workload: decision for decision in cycle.decisions if decision.action is Action.START}
    runs: list[RunningRun] = []
    held: dict[str, int] = {}
    for gang in [waiting for waiting in state.pending if waiting.workload in starts]:
        decision = starts[gang.workload]
        klass, placement = decision.klass or "unallocated", decision.placement or {}
        run, hold_gpu_ms = gang.begun(STARTED, cycle.at_s, klass=klass, placement=placement, config=config)
        runs.append(run)
        held[gang.account] = held.get(gang.account, 0) + hold_gpu_ms
    return replace(
        state,
        accounts=tuple(account.holding(held.get(account.account, 0)) for account in state.accounts),
        running=(*state.running, *runs),
        pending=tuple(waiting for waiting in state.pending if waiting.workload not in starts),
        reservations=cycle.reservations,
    )


class Looks:
    """What cycles have for one workload on states that are a little otherwise than a first one.

    Starts, orders to leave and reservations are those of a full cycle, and so is the decision of the workload.

    Args:
        state: The first state; the workload waits there.
        config: The knobs.
        workload: Whom it is asked about.
    """

    def __init__(self, state: ClusterState, config: PolicyConfig, workload: str) -> None:
        self._config, self._workload = config, workload
        self._first = _stand(state, config)

    def anew(self, state: ClusterState) -> Cycle:
        """Return the cycle on a state; the queue is made anew, which takes a half of a full cycle."""
        return self._of(_stand(state, self._config))

    def in_the_queue(self, state: ClusterState) -> Cycle:
        """Return the cycle on a state with other runs or hosts, in the order of the first one, however long that is.

        The order rests on runs only where an account is at its floor: else the two say the same.
        """
        return self._of(
            replace(self._first, state=state, yard=Yard(state, self._config.quantum_s).at(state.at_s))
        )

    def _of(self, standing: _Standing) -> Cycle:
        workload = next(one for one in standing.state.pending if one.workload == self._workload)
        with without_collecting():
            return _sparse_cycle(standing, workload, standing.state.at_s, self._config)


def with_submission(state: ClusterState, workload: PendingWorkload, at_s: int) -> ClusterState:
    """Return the state at an instant when one workload more waits.

    Raises:
        Refused: When it waits already.
    """
    return replace(state, at_s=at_s, pending=(*state.pending, workload))
