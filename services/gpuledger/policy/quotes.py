"""When a workload could start that is not there yet: a date that is kept, or an estimate, and why.

The workload is put into the queue as the last of its account, and the production cycle decides: now, and at the last
instant at which the next one may come (until then others become eligible, a protection ends, a reservation comes too
near for a start beside it). The later answer counts:

- it starts, or GPUs are promised or reserved to it: the date is a *bound*. Nobody who submits later can push it back,
  because a reservation stays with its workload whoever comes to stand before it;
- it waits without: the date is an *estimate*, from running the cycle forward over what is known.

A bound holds for a workload that is submitted before the next cycle and is what was asked for, while its hosts stay,
its account keeps its share and its funding, cycles come as often as was said, and whoever is told to leave does so
within the grace. Work that others submit before that same cycle may be served before it, and so may work whose account
is by then before its own, as use or credits accrue.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from gpuledger.kernel.accounts import check_path
from gpuledger.kernel.clock import instant, iso
from gpuledger.kernel.errors import Refused
from gpuledger.policy.cadence import NO_CYCLE, Cadence
from gpuledger.policy.cycle import Action, Decision, Shared, run_cycle
from gpuledger.policy.forecast import forecast, shares_of
from gpuledger.policy.placement import Placement
from gpuledger.policy.state import ClusterState, PendingWorkload, PolicyConfig, Reservation

QUOTED = "~quoted"
"""How the workload is named that nobody has submitted."""


class Certainty(StrEnum):
    """What a date rests on."""

    BOUND = "bound"
    ESTIMATE = "estimate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked about.

    Args:
        account: Who would pay.
        gpus_milli: GPUs, all at once.
        minimum_runtime_s: The shortest occupancy that makes progress; 0 asks to run unallocated.
        gpu_model: The model it insists on, if any.
        priority: Order inside the account.
    """

    account: str
    gpus_milli: int
    minimum_runtime_s: int
    gpu_model: str | None = None
    priority: int = 0

    def __post_init__(self) -> None:
        """Refuse what no workload could ask for."""
        check_path(self.account)
        if self.gpus_milli <= 0:
            raise Refused("a quote needs GPUs to ask for", hint="say how many GPUs the workload starts on")
        if self.minimum_runtime_s < 0:
            raise Refused(
                f"a minimum runtime of {self.minimum_runtime_s} s", hint="0 asks to run unallocated"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """When the workload would start.

    Args:
        at_s: When it was asked.
        starts_by_s: The latest start of a bound, the likely one of an estimate; None where nobody can say.
        certainty: What the date rests on; None without one.
        reason: Why then, or why nobody can say.
        is_funded: Whether shares and minimum runtime let it run charged and protected.
        position: Its place in the queue; None where it has none.
        placement: Where it would start, as far as that is fixed.
        kept: The reservation that it would get.
    """

    at_s: int
    starts_by_s: int | None
    certainty: Certainty | None
    reason: str
    is_funded: bool
    position: int | None
    placement: Placement = field(default_factory=dict)
    kept: Reservation | None = None


def quote(
    state: ClusterState,
    config: PolicyConfig,
    request: Request,
    *,
    cadence: Cadence = NO_CYCLE,
    limits_s: Mapping[str, int] | None = None,
    asked_before: Mapping[str, PendingWorkload] | None = None,
) -> Quote:
    """Return when a workload would start that is submitted now.

    Args:
        state: The cluster now.
        config: The knobs.
        request: The workload.
        cadence: How often cycles come.
        limits_s: Workload -> declared limit of each of its runs, where one was declared.
        asked_before: Workload -> what it asks for when it waits again, of those that run.
    """
    asked = PendingWorkload(
        workload=QUOTED,
        account=request.account,
        gpus_milli=request.gpus_milli,
        submitted_at_s=state.at_s,
        eligible_at_s=state.at_s,
        priority=request.priority,
        minimum_runtime_s=config.protected_s(request.minimum_runtime_s),
        gpu_model=request.gpu_model,
    )
    asking = _with_demand(replace(state, pending=(*state.pending, asked)), asked)
    found = _decided(asking, config, asked, state.at_s, cadence)
    last_s = state.at_s + cadence.cycle_s
    if found.certainty is Certainty.BOUND:
        last = _decided(replace(asking, at_s=last_s), config, asked, state.at_s, cadence)
        found = _later(found, last, last_s)
    if found.certainty is Certainty.BOUND or found.position is None:
        return found
    ahead = forecast(asking, config, QUOTED, limits_s=limits_s, asked=asked_before)
    if ahead.starts_at_s is None:
        seen = iso(instant(ahead.seen_until_s))
        return replace(found, reason=f"{found.reason} Looking ahead until {seen}, it does not start.")
    return replace(found, starts_by_s=ahead.starts_at_s, certainty=Certainty.ESTIMATE)


def _decided(
    asking: ClusterState, config: PolicyConfig, asked: PendingWorkload, at_s: int, cadence: Cadence
) -> Quote:
    """Return what a cycle on a state has for the workload: a bound, or nothing yet.

    Args:
        asking: The cluster, with the workload pending, at the instant of the cycle.
        config: The knobs.
        asked: The workload.
        at_s: When it was asked.
        cadence: How often cycles come.
    """
    cycle = run_cycle(asking, config)
    decision = next(d for d in cycle.decisions if d.workload == QUOTED)
    kept = next((r for r in cycle.reservations if r.workload == QUOTED), None)
    starts_by_s = None
    if decision.action is Action.START:
        starts_by_s = at_s + cadence.cycle_s
    elif kept is not None:
        starts_by_s = cadence.latest_start_if_submitted_s(kept, at_s, config)
    return Quote(
        at_s=at_s,
        starts_by_s=starts_by_s,
        certainty=None if starts_by_s is None else Certainty.BOUND,
        reason=_as_said(decision),
        is_funded=_is_funded(asking, asked),
        position=decision.numbers.get("position"),
        placement=decision.placement or (kept.placement if kept and asking.hosts else {}),
        kept=kept,
    )


def _later(first: Quote, last: Quote, last_s: int) -> Quote:
    """Return the later of two bounds; without a certainty where the second is none."""
    if last.certainty is Certainty.BOUND:
        return max(first, last, key=lambda one: one.starts_by_s or 0)
    reason = (
        f"{first.reason} A cycle that comes only at {iso(instant(last_s))} decides otherwise: {last.reason}"
    )
    return replace(first, starts_by_s=None, certainty=None, reason=reason)


def _with_demand(state: ClusterState, asked: PendingWorkload) -> ClusterState:
    """Return the state in which its account asks for the GPUs, too: where credits divide, its place rests on that."""
    if not _is_funded(state, asked):
        return state
    return replace(
        state,
        accounts=tuple(
            replace(account, demand_milli=account.demand_milli + asked.gpus_milli)
            if account.account == asked.account
            else account
            for account in state.accounts
        ),
    )


def _is_funded(state: ClusterState, asked: PendingWorkload) -> bool:
    return shares_of(state).is_funded(asked.account, asked.minimum_runtime_s)


def _as_said(decision: Decision | Shared) -> str:
    """Return the reason, of a workload that has no name."""
    return decision.reason.replace(QUOTED, "it")
