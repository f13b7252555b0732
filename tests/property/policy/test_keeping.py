"""Hosts that are kept for the unallocated work that waited longest, on clusters that carry out what is decided.

What is ordered is the same in every kind of cycle, and allocated work sees nothing of it.
"""

import random
from dataclasses import replace

import pytest
from tests.conftest import FORM
from tests.property.policy.simulation import CONFIG, World, drain_or_repair, random_job, random_world
from tests.property.policy.test_incremental import random_submission

from gpuledger.policy.cycle import Action, Cycle, Decision, run_cycle
from gpuledger.policy.incremental import carried_out, prepare, with_submission
from gpuledger.policy.ordering import Ordering
from gpuledger.policy.state import ClusterState, PolicyConfig

WORLDS = {"short": 60, "full": 900}[FORM]
TICKS, PARTS = 16, 3
KEEPS = replace(CONFIG, unallocated_keeps_after_s=120)


def ordered(cycle: Cycle) -> list[tuple[str, str, dict[str, int], str | None]]:
    """Starts and orders to leave, in their order."""
    return [
        (decision.workload, decision.action, dict(decision.placement or {}), decision.klass)
        for decision in cycle.decisions
        if isinstance(decision, Decision) and decision.action is not Action.WAIT
    ]


def of_allocated_work(state: ClusterState, config: PolicyConfig) -> object:
    """All that is decided but which unallocated work starts."""
    cycle = run_cycle(state, config)
    rights = [order for order in ordered(cycle) if order[1] != Action.START or order[3] == "allocated"]
    return rights, cycle.reservations, cycle.allocations


@pytest.mark.parametrize("part", range(PARTS))
def test_allocated_work_is_served_as_if_nothing_was_kept_and_every_kind_of_cycle_orders_the_same(
    part: int,
) -> None:
    kept_out = 0
    for seed in range(part, WORLDS, PARTS):
        rng = random.Random(f"kept {seed}")
        world, busy = random_world(rng), 0.5 + 0.4 * rng.random()
        world.config = KEEPS
        told = Ordering(KEEPS)
        for _ in range(TICKS):
            while rng.random() < busy:
                world.submit(random_job(rng, world))
            if rng.random() < 0.05:
                drain_or_repair(rng, world)
            state = world.state()
            full = run_cycle(state, KEEPS)
            assert of_allocated_work(state, KEEPS) == of_allocated_work(state, CONFIG)
            assert ordered(told.cycle(state)) == ordered(full)
            kept_out += ordered(full) != ordered(run_cycle(state, CONFIG))
            check_a_submission(rng, world, state)
            world.tick()
    assert kept_out > WORLDS // 10


def check_a_submission(rng: random.Random, world: World, state: ClusterState) -> None:
    """A cycle by event orders what a full one would."""
    prepared = prepare(state, KEEPS)
    workload = random_submission(rng, world, "submitted", state.at_s)
    told = with_submission(carried_out(state, prepared.cycle, KEEPS), workload, state.at_s)
    _, cycle = prepared.submitted(workload, state.at_s)
    assert ordered(cycle) == ordered(run_cycle(told, KEEPS))
