"""The orders of a cycle against those of a full one, on clusters that carry out what is decided."""

import random

import pytest
from tests.conftest import FORM
from tests.property.policy.simulation import CONFIG, World, drain_or_repair, random_job, random_world
from tests.property.policy.test_incremental import below_one_root

from gpuledger.policy.cycle import Action, run_cycle
from gpuledger.policy.ordered import ordered

WORLDS = {"short": 60, "full": 900}[FORM]
TICKS, PARTS = 20, 4


def check(world: World) -> int:
    """Compare both on a world; return how much is ordered."""
    full, found = run_cycle(world.state(), CONFIG), ordered(world.state(), CONFIG)
    orders = tuple(decision for decision in full.decisions if decision.action is not Action.WAIT)
    assert found.decisions == orders
    assert found.reservations == full.reservations
    assert (found.at_s, found.supply_milli, found.allocations) == (full.at_s, full.supply_milli, ())
    return len(orders)


@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_ordered_is_what_a_full_cycle_orders(part: int) -> None:
    orders = 0
    for seed in range(part, WORLDS, PARTS):
        rng = random.Random(f"ordered {seed}")
        world, busy = random_world(rng), 0.3 + 0.65 * rng.random()
        if seed % 3 == 0:
            below_one_root(world)
        for _ in range(TICKS):
            while rng.random() < busy:
                world.submit(random_job(rng, world))
            if rng.random() < 0.05:
                drain_or_repair(rng, world)
            orders += check(world)
            world.tick()
    assert orders > WORLDS
