"""What stands between two cycles, and what turnover makes of it: what a cycle by event is answered from. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from gpuledger.kernel.accounts import own_path
from gpuledger.kernel.collecting import without_cycles
from gpuledger.policy.blocks import Blocks, Spot, cut
from gpuledger.policy.contenders import allocated, unallocated
from gpuledger.policy.cycle import parted, tree_of, tree_with
from gpuledger.policy.fair_share import class_of, entry_of, lines
from gpuledger.policy.ranking import Ranking
from gpuledger.policy.state import (
    ClusterState,
    PendingWorkload,
    PolicyConfig,
    Reservation,
    RunningRun,
    WorkClass,
)
from gpuledger.policy.tree import Tree
from gpuledger.policy.turnover import Turnover, with_turnover
from gpuledger.policy.yard import Yard

FEW = 8
"""So many workloads that became eligible meanwhile are put into the queue one by one."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands between two cycles: everything that was ordered is done.

    Args:
        state: Runs, hosts and accounts; nobody waits in it, and its reservations are those of the last full look.
        waiting: Who waited at the last full look.
        left: Those of them that wait no more.
        late: Work that was submitted since, by name.
        reservations: Those of the last cycle.
        tree: The accounts.
        ranking: How they stand, as far as preemption asks.
        yard: Hosts and runs, with nothing decided yet.
        queues: Who takes a place in the queue, by class.
        outside: Who does not.
        workers: The accounts that run something or wait, and those that did.
        names: Who waited at the last full look, by name.
        holding_gpu_ms: What is set aside for each workload that was started since the last full look.
    """

    state: ClusterState
    waiting: tuple[PendingWorkload, ...]
    left: frozenset[str]
    late: dict[str, PendingWorkload]
    reservations: tuple[Reservation, ...]
    tree: Tree
    ranking: Ranking
    yard: Yard
    queues: dict[WorkClass, Blocks]
    outside: tuple[PendingWorkload, ...]
    workers: frozenset[str]
    names: dict[str, PendingWorkload]
    holding_gpu_ms: Mapping[str, int]

    def told(self, at_s: int) -> ClusterState:
        """Return the state that a cycle at an instant is told."""
        stay = self.waiting
        if self.left:
            stay = tuple(one for one in self.waiting if one.workload not in self.left)
        pending = (*stay, *self.late.values())
        return replace(self.state, at_s=at_s, pending=pending, reservations=self.reservations)

    def waits(self, name: str) -> PendingWorkload | None:
        """Return the workload that waits under a name."""
        return self.late.get(name) or (None if name in self.left else self.names.get(name))

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

    def with_submission(
        self, workload: PendingWorkload, at_s: int, config: PolicyConfig
    ) -> "Standing | None":
        """Return what stands when one workload more waits; None when that calls for a full cycle."""
        leaf = own_path(workload.account)
        leaf = leaf if leaf in self.tree.nodes else workload.account
        if leaf not in self.tree.nodes or self.tree.nodes[leaf].children or self.waits(workload.workload):
            return None
        outside = (*self.outside, workload)
        with_it = replace(
            self,
            late={**self.late, workload.workload: workload},
            outside=outside,
            workers=self.workers | {workload.account},
        )
        return with_it.joined(at_s, config)

    def joined(self, at_s: int, config: PolicyConfig) -> "Standing | None":
        """Return what stands once who is eligible by an instant has a place in the queue; None where these are many.

        None, too, where the instant is before that of the last look.
        """
        joining = [
            one
            for one in self.outside
            if one.eligible_at_s <= at_s and self.yard.is_possible(one.gpus_milli, one.gpu_model)
        ]
        if at_s < self.state.at_s or len(joining) > FEW:
            return None
        queues = dict(self.queues)
        for joiner in joining:
            klass = class_of(self.tree, joiner)
            entry = entry_of(joiner, klass, config)
            queues[klass] = queues[klass].with_entry(self.tree.leaf_path(joiner.account), entry)
        gone = {joiner.workload for joiner in joining}
        outside = tuple(one for one in self.outside if one.workload not in gone)
        return replace(self, queues=queues, outside=outside)

    def after(self, turnover: Turnover, at_s: int, config: PolicyConfig) -> "Standing":
        """Return what stands after turnover: what lies on the way to an account that it touches is made anew.

        Where the accounts themselves are others by it, everything is.

        Raises:
            Refused: When the state contradicts itself then.
        """
        with without_cycles():
            gone = [run for run in self.state.running if run.id in set(turnover.gone)]
            leaving = [one for name in turnover.left if (one := self.waits(name)) is not None]
            state = replace(with_turnover(self.state, turnover), at_s=at_s)
            tree = self._tree_of(state, [*gone, *turnover.come, *leaving], config)
            left = self.left | {one.workload for one in leaving if one.workload not in self.late}
            late = {name: one for name, one in self.late.items() if name not in turnover.left}
            holding = {**self.holding_gpu_ms, **turnover.holding_gpu_ms}
            if tree is None:
                whole = replace(self, state=state, left=left, late=late).told(at_s)
                return replace(stand(whole, config), holding_gpu_ms=holding)
            return replace(
                self,
                state=state,
                left=left,
                late=late,
                tree=tree,
                ranking=Ranking(tree, config),
                yard=self.yard.after(state, gone, turnover.come),
                queues=self._queues_of(tree, leaving, config),
                outside=tuple(one for one in self.outside if one.workload not in turnover.left),
                workers=self.workers | {run.account for run in turnover.come},
                holding_gpu_ms=holding,
            )

    def _tree_of(
        self, state: ClusterState, touched: Iterable[RunningRun | PendingWorkload], config: PolicyConfig
    ) -> Tree | None:
        """Return the accounts of a state; None where there are others than were, or could be."""
        listed = {one.account for one in state.accounts}
        for account in {one.account for one in touched}:
            if account not in self.tree.nodes or self.tree.leaf_path(account) not in listed:
                return None
        running: Counter[str] = Counter()
        for run in state.running:
            running[run.account] += run.gpus_milli if run.klass == "allocated" else 0
        tree = tree_with(state, running, self.workers, {}, config)
        return tree if tree.nodes.keys() == self.tree.nodes.keys() else None

    def _queues_of(
        self, tree: Tree, leaving: Iterable[PendingWorkload], config: PolicyConfig
    ) -> dict[WorkClass, Blocks]:
        without: dict[WorkClass, dict[str, set[str]]] = {"allocated": {}, "unallocated": {}}
        for one in leaving:
            leaf = tree.leaf_path(one.account)
            without[class_of(tree, one)].setdefault(leaf, set()).add(one.workload)
        tops = {"allocated": allocated(tree, config), "unallocated": unallocated(tree)}
        return {klass: blocks.moved(tops[klass], without[klass]) for klass, blocks in self.queues.items()}


def stand(state: ClusterState, config: PolicyConfig) -> Standing:
    """Return what stands in a state; it takes a third to a half of a full cycle."""
    with without_cycles():
        yard = Yard(state, config.quantum_s)
        queue, outside = parted(state, yard)
        tree = tree_of(state, queue, config)
        queues = {klass: cut(line) for klass, line in lines(tree, queue, config).items()}
        for blocks in queues.values():
            blocks.look_over()
        workers = (*(run.account for run in state.running), *(one.account for one in state.pending))
        return Standing(
            state=replace(state, pending=()),
            waiting=state.pending,
            left=frozenset(),
            late={},
            reservations=state.reservations,
            tree=tree,
            ranking=Ranking(tree, config),
            yard=yard.at(state.at_s),
            queues=queues,
            outside=tuple(outside),
            workers=frozenset(workers),
            names={workload.workload: workload for workload in state.pending},
            holding_gpu_ms={},
        )
