"""The date of every reservation is kept, at any interval of cycles, whoever else holds one and whatever is due then."""

import random

import pytest
from tests.conftest import FORM
from tests.property.policy.simulation import (
    CONFIG,
    INTERVALS_S,
    HostState,
    Job,
    World,
    divided_by_turns,
    random_job,
    random_world,
)

from gpuledger.policy.cadence import Cadence

WORLDS = {"short": 60, "full": 3_000}[FORM]
PARTS = 3
TICKS = 60
FOR_EVER_S = 10**9


class Dates:
    """What reservations were told by when they have led to a start."""

    def __init__(self, every_s: int) -> None:
        self.every_s = every_s
        self.told: dict[str, int] = {}
        self.kept = 0

    def after(self, world: World, at_s: int) -> None:
        """Look at the world after the cycle of an instant: who should have started has, and the others have a date."""
        assert all(date_s >= at_s for date_s in self.told.values()), (at_s, self.told)
        waiting = {job.name for job in world.waiting()}
        for name in self.told.keys() - waiting:
            del self.told[name]
            self.kept += 1
        assert all(date_s > at_s for date_s in self.told.values()), (at_s, self.told)
        cadence = Cadence(at_s, self.every_s)
        for kept in world.reservations:
            date_s = cadence.latest_start_s(kept, at_s, CONFIG)
            longest_s = CONFIG.protection_cap_s + CONFIG.grace_s + 2 * self.every_s
            assert date_s <= at_s + longest_s, "what DESIGN.md calls the bound, from the reservation on"
            self.told[kept.workload] = min(date_s, self.told.get(kept.workload, date_s))


def tick(rng: random.Random, world: World, dates: Dates) -> None:
    """Run a cycle; the next one comes after an interval, or earlier, as after an event."""
    at_s = world.at_s
    world.cycle_s = rng.choice([dates.every_s, dates.every_s, rng.randint(1, dates.every_s)])
    world.tick()
    dates.after(world, at_s)


@pytest.mark.parametrize("part", range(PARTS))
def test_the_date_of_a_reservation_is_kept(part: int) -> None:
    kept = 0
    for seed in range(part, WORLDS, PARTS):
        rng = random.Random(f"date {seed}")
        world, busy = divided_by_turns(random_world(rng), seed), 0.3 + 0.6 * rng.random()
        dates = Dates(rng.choice(INTERVALS_S))
        for _ in range(TICKS):
            while rng.random() < busy:
                world.submit(random_job(rng, world))
            tick(rng, world, dates)
        kept += dates.kept
    assert kept


def crossed_world(rng: random.Random) -> World:
    """Each account has all hosts of a model, its runs safe for equally long, and asks for those of another's."""
    models = ("x", "y", "z")[: rng.randint(2, 3)]
    hosts = [
        HostState(host=f"{model}{n:02}", gpus_milli=8000, gpu_model=model)
        for model, count in zip(
            models, rng.sample([1, rng.randint(2, 8), rng.randint(9, 11)], 3), strict=False
        )
        for n in range(count)
    ]
    world = World(hosts, dict.fromkeys(models, 1))
    safe_s = rng.randint(CONFIG.notice_s, CONFIG.protection_cap_s)
    for host in hosts:
        world.submit(_gang(world, account=host.gpu_model, model=host.gpu_model, hosts=1, minimum_s=safe_s))
    world.tick()
    for model, owner in zip(
        models, rng.choice([models[1:] + models[:1], models[-1:] + models[:-1]]), strict=True
    ):
        count = sum(host.gpu_model == model for host in hosts)
        world.submit(_gang(world, account=owner, model=model, hosts=count, minimum_s=3600))
    return world


def _gang(world: World, *, account: str, model: str, hosts: int, minimum_s: int) -> Job:
    return Job(
        name=f"w{world.submitted}",
        account=account,
        gpus=8 * hosts,
        minimum_s=minimum_s,
        length_s=FOR_EVER_S,
        submitted_s=world.at_s,
        model=model,
    )


@pytest.mark.parametrize("part", range(PARTS))
def test_reservations_that_are_due_at_once_against_one_another_keep_their_dates(part: int) -> None:
    """Each takes the GPUs of another's account: the date of none may depend on who comes first."""
    for seed in range(part, WORLDS, PARTS):
        rng = random.Random(f"crossed {seed}")
        world = crossed_world(rng)
        dates = Dates(rng.choice(INTERVALS_S))
        last_s = world.at_s + CONFIG.protection_cap_s + CONFIG.grace_s + 3 * dates.every_s
        while world.at_s < last_s:
            tick(rng, world, dates)
        assert dates.kept >= len(world.shares), seed
