"""Which runs are told that they have to leave, and when: as soon as it is ordered, or can be foreseen. Pure.

An order is told with the cycle that gives it, a grace before the GPUs are expected back. What a bound reservation will
take is foreseen: when no more than the notice is left until its instant, every run on its hosts that it may take then
is told so. Each run is told once for each asker, and once for each of the two.
"""

from collections.abc import Iterator
from typing import NamedTuple

from gpuledger.events.workload import PreemptionAnnounced
from gpuledger.kernel.clock import instant
from gpuledger.policy.cycle import Action, Cycle
from gpuledger.policy.places import place_runs
from gpuledger.policy.state import ClusterState, PolicyConfig, Reservation, ReservationKind, RunId
from gpuledger.policy.words import gpus, moment


class Notice(NamedTuple):
    """What is told about one run.

    Args:
        id: The same for whoever tells the same.
        fact: What is told.
    """

    id: str
    fact: PreemptionAnnounced


def notices(state: ClusterState, config: PolicyConfig, cycle: Cycle) -> tuple[Notice, ...]:
    """Return what a cycle has to tell runs, by run: whoever was told before is told again, under the same id.

    Args:
        state: What the cycle was told.
        config: The knobs.
        cycle: The cycle.
    """
    found = [*_ordered(config, cycle), *_foreseen(state, config, cycle)]
    return tuple(sorted(found, key=lambda notice: (notice.fact.workload, notice.fact.run, notice.id)))


def _ordered(config: PolicyConfig, cycle: Cycle) -> Iterator[Notice]:
    askers = {run: kept.workload for kept in cycle.reservations for run in kept.leaving}
    for decision in cycle.decisions:
        if decision.action is not Action.PREEMPT or decision.run is None:
            continue
        asker = askers.get(RunId(decision.workload, decision.run))
        yield Notice(
            f"leaves/{decision.workload}/{decision.run}/{asker or '~drain'}",
            PreemptionAnnounced(
                cluster=cycle.cluster,
                workload=decision.workload,
                run=decision.run,
                leaves_at=instant(cycle.at_s + config.grace_s),
                reason=decision.reason,
                asker=asker,
            ),
        )


def _foreseen(state: ClusterState, config: PolicyConfig, cycle: Cycle) -> Iterator[Notice]:
    due = [kept for kept in cycle.reservations if _is_due(kept, cycle.at_s, config)]
    if not due or not state.hosts:
        return
    places = place_runs(state.running, state.hosts)
    told = {
        RunId(d.workload, d.run) for d in cycle.decisions if d.action is Action.PREEMPT and d.run is not None
    }
    for kept in due:
        for run in state.running:
            is_there = not kept.placement.keys().isdisjoint(places[run.id])
            if not is_there or run.id in told or run.safe_until_s(config.quantum_s) > kept.at_s:
                continue
            size = gpus(sum(kept.placement.values()))
            yield Notice(
                f"foreseen/{run.workload}/{run.run}/{kept.workload}",
                PreemptionAnnounced(
                    cluster=cycle.cluster,
                    workload=run.workload,
                    run=run.run,
                    leaves_at=instant(kept.at_s + config.grace_s),
                    reason=(
                        f"May have to leave for {kept.workload}, to which {size} are reserved here from "
                        f"{moment(kept.at_s)} on."
                    ),
                    asker=kept.workload,
                    foreseen=True,
                ),
            )


def _is_due(kept: Reservation, at_s: int, config: PolicyConfig) -> bool:
    return kept.kind is ReservationKind.BOUND and kept.at_s - at_s <= config.notice_s
