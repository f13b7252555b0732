"""Laws of whole cycles, on clusters that carry out what is decided (tests/property/policy/simulation.py)."""

import random

import pytest
from tests.conftest import FORM
from tests.property.policy.simulation import CONFIG, CYCLE_S, drain_or_repair, random_job, random_world

CYCLES = {"short": 600, "full": 10_000}[FORM]
EACH = 50
PARTS = 3
BOUND_S = CONFIG.protection_cap_s + CONFIG.grace_s + 3 * CYCLE_S
"""From a reservation to the start: cap, grace, and up to three cycles until somebody looks."""


@pytest.mark.parametrize("part", range(PARTS))
def test_random_cycles_keep_every_law(part: int) -> None:
    """What simulation.check asserts in each cycle, promises kept, reservations met, and a bounded rate."""
    for seed in range(part, CYCLES // EACH, PARTS):
        rng = random.Random(seed)
        world, busy = random_world(rng), 0.9 * rng.random()
        for _ in range(EACH):
            while rng.random() < busy:
                world.submit(random_job(rng, world))
            world.tick()
            for name, since_s in world.promised_since.items():
                assert world.at_s - since_s <= CONFIG.grace_s + 2 * CYCLE_S, (seed, name)
            for name, since_s in world.bound_since.items():
                assert world.at_s - since_s <= BOUND_S, (seed, name)
        quanta = -(-EACH * CYCLE_S // CONFIG.quantum_s)
        assert len(world.taken) <= quanta * world.healthy_milli // 1000, seed


@pytest.mark.parametrize("part", range(PARTS))
def test_hosts_that_are_emptied_and_come_back_break_no_law(part: int) -> None:
    for seed in range(part, CYCLES // EACH // 2, PARTS):
        rng = random.Random(f"drain {seed}")
        world, busy = random_world(rng), 0.9 * rng.random()
        for _ in range(EACH):
            while rng.random() < busy:
                world.submit(random_job(rng, world))
            if rng.random() < 0.1:
                drain_or_repair(rng, world)
            world.tick()
