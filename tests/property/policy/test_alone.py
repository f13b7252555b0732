"""What is ordered for one who waits alone against what a full cycle orders, on clusters that carry out decisions."""

import random

import pytest
from tests.conftest import FORM
from tests.property.policy.simulation import CONFIG, random_job, random_world
from tests.property.policy.test_incremental import below_one_root

from gpuledger.policy.alone import alone
from gpuledger.policy.cycle import Action, run_cycle, tree_of
from gpuledger.policy.placement import Room

WORLDS = {"short": 200, "full": 4_000}[FORM]
TICKS, PARTS = 12, 4


@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_ordered_for_one_is_what_a_full_cycle_orders(part: int) -> None:
    started = unfunded = only_a_cycle = 0
    for seed in range(part, WORLDS, PARTS):
        rng = random.Random(f"alone {seed}")
        world = random_world(rng)
        if seed % 3 == 0:
            below_one_root(world)
        for _ in range(TICKS):
            if not world.waiting():
                world.submit(random_job(rng, world))
            state = world.state()
            if len(state.pending) == 1 and not state.reservations:
                (waits,) = state.pending
                tree = tree_of(state, state.pending, CONFIG)
                room = Room(state.hosts, [run.placement for run in state.running])
                is_funded = tree.nodes[tree.leaf_path(waits.account)].funded
                found = alone(waits, room, state.at_s, is_funded=is_funded)
                if found is None:
                    only_a_cycle += 1
                else:
                    full = run_cycle(state, CONFIG)
                    (decision,) = full.decisions
                    assert (decision.action, decision.workload) == (Action.START, waits.workload)
                    assert (decision.placement, decision.klass) == (found.placement, found.klass)
                    assert full.reservations == ()
                    started, unfunded = started + 1, unfunded + (found.klass == "unallocated")
            world.tick()
    assert min(started, unfunded, only_a_cycle) > 20
