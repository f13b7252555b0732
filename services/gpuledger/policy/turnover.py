"""What came and went on a cluster between two cycles: runs that ended or were named, work that waits no more. Pure."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from gpuledger.policy.cycle import Cycle, Decision
from gpuledger.policy.decisions import STARTED
from gpuledger.policy.outcomes import Action
from gpuledger.policy.state import ClusterState, PendingWorkload, PolicyConfig, RunId, RunningRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Turnover:
    """What is otherwise than it was told before.

    Args:
        gone: The runs that are there no more, or not as they were.
        come: The runs that are there from now on.
        left: The workloads that wait no more.
        held_gpu_ms: By how much what an account has set aside is another, where it is.
        holding_gpu_ms: What is set aside for a workload by now, of those for which that is another.
    """

    gone: tuple[RunId, ...] = ()
    come: tuple[RunningRun, ...] = ()
    left: tuple[str, ...] = ()
    held_gpu_ms: Mapping[str, int] = field(default_factory=dict)
    holding_gpu_ms: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Tell whether anything is otherwise."""
        return bool(self.gone or self.come or self.left)


NO_TURNOVER = Turnover()
"""Everything is as it was."""


def with_turnover(state: ClusterState, turnover: Turnover) -> ClusterState:
    """Return the state after it; what its accounts used is counted as it was, but for what they have set aside.

    Raises:
        Refused: When an account sets aside less than nothing, or a run is there twice.
    """
    gone, left, held = set(turnover.gone), set(turnover.left), turnover.held_gpu_ms
    return replace(
        state,
        accounts=tuple(one.holding(held.get(one.account, 0)) for one in state.accounts),
        running=(*(run for run in state.running if run.id not in gone), *turnover.come),
        pending=tuple(one for one in state.pending if one.workload not in left),
    )


def starts_of(cycle: Cycle, waits: Callable[[str], PendingWorkload | None], config: PolicyConfig) -> Turnover:
    """Return what comes of the starts of a cycle once they run; a start has no run id yet: it is empty.

    Args:
        cycle: The cycle.
        waits: Gives the workload that waited under a name.
        config: The knobs.
    """
    runs: list[RunningRun] = []
    held: Counter[str] = Counter()
    holding: dict[str, int] = {}
    for decision in cycle.decisions:
        if decision.action is not Action.START or not isinstance(decision, Decision):
            continue
        gang = waits(decision.workload)
        assert gang is not None  # noqa: S101 - whoever starts waited
        klass, placement = decision.klass or "unallocated", decision.placement or {}
        run, hold_gpu_ms = gang.begun(STARTED, cycle.at_s, klass=klass, placement=placement, config=config)
        runs.append(run)
        held[gang.account] += hold_gpu_ms
        holding[gang.workload] = hold_gpu_ms
    left = tuple(run.workload for run in runs)
    return Turnover(come=tuple(runs), left=left, held_gpu_ms=held, holding_gpu_ms=holding)
