"""A draining host is empty by the date that the calendar told, whatever others submit."""

import random
from dataclasses import replace

import pytest
from tests.conftest import FORM
from tests.property.policy.simulation import CONFIG, INTERVALS_S, random_job, random_world
from tests.property.policy.test_quotes import crowd, settle

from gpuledger.policy.agenda import Kind, of_hosts
from gpuledger.policy.cadence import Cadence
from gpuledger.policy.quotes import Certainty

WORLDS = {"short": 30, "full": 3_000}[FORM]
PARTS = 3


@pytest.mark.parametrize("part", range(PARTS))
def test_a_draining_host_is_empty_by_its_date(part: int) -> None:
    for seed in range(part, WORLDS, PARTS):
        rng = random.Random(f"agenda {seed}")
        world = random_world(rng)
        world.cycle_s = rng.choice(INTERVALS_S)
        for _ in range(rng.randint(1, 10)):
            crowd(rng, world, 0.7)
            world.tick()
        place = rng.randrange(len(world.hosts))
        world.hosts[place] = replace(world.hosts[place], draining=True)
        settle(world)
        world.submit(random_job(rng, world))
        name = world.hosts[place].host
        cadence = Cadence(world.at_s - world.cycle_s, world.cycle_s)
        (entry,) = (one for one in of_hosts(world.state(), CONFIG, cadence=cadence) if one.kind is Kind.DRAIN)
        assert (entry.host, entry.certainty) == (name, Certainty.BOUND)
        while world.at_s < entry.at_s:
            crowd(rng, world, 0.5)
            world.tick()
        settle(world)
        assert not any(name in job.hosts for job in world.running()), seed
