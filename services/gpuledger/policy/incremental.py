"""Cycles by event: what one submission changes, without deciding anew for everybody.

``prepare`` runs a full cycle and keeps what the next event is answered from. What a cycle ordered is then taken as
done: its starts run, with what they hold counted as used, and its reservations stand. Everything else (use, shares,
hosts, other runs) stays as it was told until the next full cycle.
"""

from dataclasses import dataclass, replace

from gpuledger.policy.cycle import Cycle, run_cycle
from gpuledger.policy.decisions import STARTED, Action
from gpuledger.policy.state import AccountState, ClusterState, PendingWorkload, PolicyConfig, RunningRun


@dataclass(frozen=True, slots=True)
class Prepared:
    """A cycle, and what the next event is answered from.

    Args:
        state: What the cycle was told.
        config: The knobs.
        cycle: Its outcome.
    """

    state: ClusterState
    config: PolicyConfig
    cycle: Cycle

    def submitted(self, workload: PendingWorkload, at_s: int) -> tuple["Prepared", Cycle]:
        """Decide when one workload more waits.

        Args:
            workload: It; nobody waits or runs under its id.
            at_s: The instant, not before that of the cycle.

        Returns:
            What the next event is answered from, and the cycle: starts, preemptions and reservations are those of
            ``run_cycle(with_submission(carried_out(state, cycle, config), workload, at_s), config)``, and so is the
            decision of the workload, its reason included. Decisions of others that wait on may be left out, and so
            may the allocations.

        Raises:
            Refused: When the workload waits already.
        """
        state = with_submission(carried_out(self.state, self.cycle, self.config), workload, at_s)
        after = prepare(state, self.config)
        return after, after.cycle


def prepare(state: ClusterState, config: PolicyConfig) -> Prepared:
    """Run a full cycle, and keep what the next event is answered from.

    Raises:
        Refused: When the state contradicts itself.
    """
    return Prepared(state, config, run_cycle(state, config))


def carried_out(state: ClusterState, cycle: Cycle, config: PolicyConfig) -> ClusterState:
    """Return the state once the starts of a cycle run and its reservations stand.

    Runs that have to leave are still there; the reservations say which. A start has no run id yet: it is empty. A
    funded start holds its GPUs for its minimum runtime, up to the cap.
    """
    starts = {decision.workload: decision for decision in cycle.decisions if decision.action is Action.START}
    runs: list[RunningRun] = []
    held: dict[str, int] = {}
    for gang in [waiting for waiting in state.pending if waiting.workload in starts]:
        decision = starts[gang.workload]
        protected_s = min(gang.minimum_runtime_s, config.protection_cap_s)
        runs.append(
            RunningRun(
                workload=gang.workload,
                run=STARTED,
                account=gang.account,
                gpus_milli=gang.gpus_milli,
                started_at_s=cycle.at_s,
                protected_until_s=cycle.at_s + protected_s,
                klass=decision.klass or "allocated",
                placement=decision.placement or {},
                priority=gang.priority,
            )
        )
        if decision.klass == "allocated":
            held[gang.account] = held.get(gang.account, 0) + gang.counted_gpu_ms(protected_s)
    return replace(
        state,
        accounts=tuple(_holding(account, held.get(account.account, 0)) for account in state.accounts),
        running=(*state.running, *runs),
        pending=tuple(waiting for waiting in state.pending if waiting.workload not in starts),
        reservations=cycle.reservations,
    )


def with_submission(state: ClusterState, workload: PendingWorkload, at_s: int) -> ClusterState:
    """Return the state at an instant when one workload more waits.

    Raises:
        Refused: When it waits already.
    """
    return replace(state, at_s=at_s, pending=(*state.pending, workload))


def _holding(account: AccountState, gpu_ms: int) -> AccountState:
    if not gpu_ms:
        return account
    return replace(
        account, used_gpu_ms=account.used_gpu_ms + gpu_ms, held_gpu_ms=account.held_gpu_ms + gpu_ms
    )
