"""Cycles by event: what one submission changes, without deciding anew for everybody.

``prepare`` runs a full cycle and keeps what the next event is answered from. What a cycle ordered is then taken as
done: its starts run, with what they hold counted as used, and its reservations stand. Everything else (use, shares,
hosts, other runs) stays as it was told until the next full cycle.
"""

from collections.abc import Mapping
from dataclasses import replace

from gpuledger.kernel.collecting import without_collecting, without_cycles
from gpuledger.policy.cycle import Cycle, decide_outside, run_cycle
from gpuledger.policy.decisions import STARTED
from gpuledger.policy.preemption import Preemption
from gpuledger.policy.sparse import walk_sparsely
from gpuledger.policy.standing import Standing, stand
from gpuledger.policy.state import ClusterState, PendingWorkload, PolicyConfig, RunningRun
from gpuledger.policy.turnover import Turnover, starts_of, with_turnover
from gpuledger.policy.yard import Yard


class Prepared:
    """A cycle, and what the next event is answered from.

    Args:
        standing: What stood before the cycle, for a cycle by event; None for a full one.
        state: What the full cycle was told; None for a cycle by event.
        config: The knobs.
        cycle: The outcome.
    """

    def __init__(
        self, standing: Standing | None, state: ClusterState | None, config: PolicyConfig, cycle: Cycle
    ) -> None:
        self._before = standing
        self._state = state
        self._standing: Standing | None = None
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

        It takes about a third of a full cycle; after a cycle by event what the accounts take that started something.
        """
        self._settle()
        return self

    @property
    def ordered(self) -> tuple[RunningRun, ...]:
        """What it and the cycles that it follows started, as it is taken to run since; none has a run's name yet."""
        return tuple(run for run in self._settle().state.running if run.run == STARTED)

    @property
    def there(self) -> ClusterState:
        """Runs, hosts and accounts as the next event finds them; nobody waits in it."""
        return self._settle().state

    @property
    def holding_gpu_ms(self) -> Mapping[str, int]:
        """What is set aside for each workload that was started since the full cycle, as the next event finds it."""
        return self._settle().holding_gpu_ms

    def waits(self, name: str) -> bool:
        """Tell whether a workload waits, as the next event finds it."""
        return self._settle().waits(name) is not None

    def after(self, turnover: Turnover, at_s: int) -> "Prepared":
        """Return what the next event is answered from once runs came and went; nothing is decided about that yet.

        Args:
            turnover: What came and went.
            at_s: The instant, not before that of the cycle.

        Raises:
            Refused: When the state contradicts itself then.
        """
        prepared = Prepared(self._before, self._state, self.config, self.cycle)
        prepared._standing = self._settle().after(turnover, at_s, self.config)
        return prepared

    def decided(self, at_s: int) -> "tuple[Prepared, Cycle] | None":
        """Decide without anybody's submission, as ``submitted`` does; None when that calls for a full cycle.

        Starts, preemptions and reservations are those of a full cycle on the same state; beside them it is stated who
        holds a reservation or heads a size class.
        """
        with without_cycles():
            after = self._settle().joined(at_s, self.config)
            if after is None:
                return None
            cycle = _sparse_cycle(after, None, at_s, self.config)
        return Prepared(after, None, self.config, cycle), cycle

    def answers(self, workload: PendingWorkload, at_s: int) -> bool:
        """Tell whether ``submitted`` decides about a workload without a full cycle."""
        return self._settle().with_submission(workload, at_s, self.config) is not None

    def submitted(self, workload: PendingWorkload, at_s: int) -> tuple["Prepared", Cycle]:
        """Decide when one workload more waits.

        Args:
            workload: It; nobody waits or runs under its id.
            at_s: The instant, not before that of the cycle.

        Returns:
            What the next event is answered from, and the cycle: starts, preemptions and reservations are those of
            ``run_cycle(with_submission(carried_out(state, cycle, config), workload, at_s), config)``, and so is the
            decision of the workload, its reason included; where runs came and went since, of ``with_turnover`` of
            what was carried out. Stated beside it is who starts, has to leave, holds a reservation or heads a size
            class; the others wait on, and the allocations are left out.

            It is a full cycle when the account of the workload was not known, or when more than a few others became
            eligible meanwhile.

        Raises:
            Refused: When the workload waits already.
        """
        standing = self._settle()
        with without_cycles():
            after = standing.with_submission(workload, at_s, self.config)
            if after is None:
                full = prepare(with_submission(standing.told(at_s), workload, at_s), self.config)
                return full, full.cycle
            cycle = _sparse_cycle(after, workload, at_s, self.config)
        return Prepared(after, None, self.config, cycle), cycle

    def _settle(self) -> Standing:
        if self._standing is None:
            if self._before is None:
                state, cycle, config = self.state, self.cycle, self.config
                starts = starts_of(cycle, {one.workload: one for one in state.pending}.get, config)
                done = replace(with_turnover(state, starts), reservations=cycle.reservations)
                self._standing = replace(stand(done, config), holding_gpu_ms=starts.holding_gpu_ms)
            else:
                standing = replace(self._before, reservations=self.cycle.reservations)
                starts = starts_of(self.cycle, self._before.waits, self.config)
                self._standing = standing.after(starts, self.cycle.at_s, self.config) if starts else standing
        return self._standing


def prepare(state: ClusterState, config: PolicyConfig) -> Prepared:
    """Run a full cycle, and keep what the next event is answered from.

    Raises:
        Refused: When the state contradicts itself.
    """
    return Prepared(None, state, config, run_cycle(state, config))


def _sparse_cycle(
    standing: Standing, workload: PendingWorkload | None, at_s: int, config: PolicyConfig
) -> Cycle:
    """Run the policy where something could change, and for one workload, if it is asked about one."""
    state = replace(standing.state, at_s=at_s, accounts=(), reservations=standing.reservations)
    yard = standing.yard.at(at_s)
    preemption = Preemption(standing.ranking, state, yard, config)
    asked = [] if workload is None else [workload]
    names = (*(kept.workload for kept in state.reservations), *(one.workload for one in asked))
    walk, decisions = walk_sparsely(
        standing.queues, standing.spots(names, config), state, yard, preemption, config
    )
    decisions += decide_outside((one for one in standing.outside if one in asked), state, yard)
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
    waiting = {one.workload: one for one in state.pending}
    after = with_turnover(state, starts_of(cycle, waiting.get, config))
    return replace(after, reservations=cycle.reservations)


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
        self._first = stand(state, config)

    def anew(self, state: ClusterState) -> Cycle:
        """Return the cycle on a state; the queue is made anew, which takes a half of a full cycle."""
        return self._of(stand(state, self._config))

    def in_the_queue(self, state: ClusterState) -> Cycle:
        """Return the cycle on a state with other runs or hosts, in the order of the first one, however long that is.

        The order rests on runs only where an account is at its floor: else the two say the same.
        """
        return self._of(
            replace(
                self._first,
                state=replace(state, pending=()),
                yard=Yard(state, self._config.quantum_s).at(state.at_s),
            )
        )

    def _of(self, standing: Standing) -> Cycle:
        workload = next(one for one in standing.waiting if one.workload == self._workload)
        with without_collecting():
            return _sparse_cycle(standing, workload, standing.state.at_s, self._config)


def with_submission(state: ClusterState, workload: PendingWorkload, at_s: int) -> ClusterState:
    """Return the state at an instant when one workload more waits.

    Raises:
        Refused: When it waits already.
    """
    return replace(state, at_s=at_s, pending=(*state.pending, workload))
