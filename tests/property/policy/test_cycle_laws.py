"""Laws of whole cycles, on clusters that carry out what is decided (tests/property/policy/simulation.py)."""

import random
from fractions import Fraction

import pytest
from tests.conftest import FORM
from tests.property.policy.simulation import (
    CONFIG,
    CYCLE_S,
    HostState,
    Job,
    World,
    drain_or_repair,
    random_job,
    random_world,
)

CYCLES = {"short": 600, "full": 10_000}[FORM]
EACH = 50
PARTS = 3
BOUND_S = CONFIG.protection_cap_s + CONFIG.grace_s + 2 * CYCLE_S
"""From a reservation to the start: cap, grace, and an interval each until a cycle tells to leave, and lets it start."""

WINDOWS = {"short": 3, "full": 60}[FORM]
SIZES = (1, 2, 4, 8)
WHOLES = {"short": 24, "full": 600}[FORM]
CROWD = 8
"""How many always wait beside a gang that asks for all there is."""


@pytest.mark.parametrize("part", range(PARTS))
def test_random_cycles_keep_every_law(part: int) -> None:
    """What simulation.check asserts in each cycle, promises kept, reservations met, and a bounded rate."""
    for seed in range(part, CYCLES // EACH, PARTS):
        rng = random.Random(seed)
        world, busy = random_world(rng), 0.9 * rng.random()
        for _ in range(EACH):
            while rng.random() < busy:
                world.submit(random_job(rng, world))
            at_s = world.at_s
            world.tick()
            for name, since_s in world.promised_since.items():
                assert at_s < since_s + CONFIG.grace_s + CYCLE_S, (seed, name)
            for name, since_s in world.bound_since.items():
                assert at_s < since_s + BOUND_S, (seed, name)
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


def crowded_world(rng: random.Random) -> World:
    """A world in which everybody has used something, but for an account that comes first of all."""
    world = random_world(rng)
    for path in world.shares:
        world.used[path] += world.healthy_milli * CONFIG.window_s // 8
    world.shares["z"] = 1
    return world


@pytest.mark.parametrize("part", range(PARTS))
def test_a_gang_of_all_there_is_starts_though_others_never_cease_to_ask(part: int) -> None:
    """Who stays first waits for the reservation of its class, for those of others, and for its own: a bound each."""
    for seed in range(part, WHOLES, PARTS):
        rng = random.Random(f"whole {seed}")
        world = crowded_world(rng)
        others = [path for path in world.shares if path != "z"]
        kind = rng.choice(world.hosts)
        alike = [h for h in world.hosts if (h.gpu_model, h.gpus_milli) == (kind.gpu_model, kind.gpus_milli)]
        gpus = sum(host.gpus_milli for host in alike) // 1000
        sizes = rng.choice([[kind.gpus_milli // 1000], [1, kind.gpus_milli // 1000, gpus]])
        begins_s = world.at_s + 15 * CYCLE_S
        while "whole" not in world.jobs or world.jobs["whole"].started_s is None:
            while len(world.waiting()) < CROWD:
                job = random_job(rng, world)
                job.account, job.minimum_s = rng.choice(others), 3600
                job.gpus, job.length_s = rng.choice(sizes), rng.choice([3600, 5000])
                world.submit(job)
            if world.at_s == begins_s:
                world.submit(Job("whole", "z", gpus, 1200, 3600, world.at_s))
            world.tick()
            assert world.at_s <= begins_s + 3 * BOUND_S, seed


def part_of(shares: dict[str, int], path: str) -> Fraction:
    """The part of the cluster that an account owns; inner accounts that are not listed have share 1."""
    part, names = Fraction(1), path.split("/")
    for depth in range(len(names)):
        siblings = {}
        for leaf, share in shares.items():
            parts = leaf.split("/")
            if len(parts) > depth and parts[:depth] == names[:depth]:
                siblings[parts[depth]] = share if len(parts) == depth + 1 else 1
        part *= Fraction(siblings[names[depth]], sum(siblings.values()))
    return part


@pytest.mark.parametrize("part", range(PARTS))
def test_who_always_asks_gets_what_it_is_entitled_to_within_a_window(part: int) -> None:
    """One account has the whole cluster when the others begin to ask; some runs never end by themselves.

    No gang is larger than what its account is entitled to: of larger ones the floor gives an account too much, for
    it comes first whenever none of them runs (docs/fairness.md).
    """
    for seed in range(part, WINDOWS, PARTS):
        rng = random.Random(f"window {seed}")
        hosts = [HostState(host=f"h{n}", gpus_milli=8000, gpu_model="a") for n in range(rng.randint(2, 4))]
        paths = ["p/x", "p/y", "q/x", "q/y/z", "r", "s"][: rng.randint(2, 6)]
        world = World(hosts, {path: rng.choice([1, 1, 2, 5]) for path in paths})
        entitled = {path: part_of(world.shares, path) * world.healthy_milli for path in paths}
        world.cycle_s, begins_s = CONFIG.quantum_s, world.at_s
        first = rng.choice(paths)
        while world.at_s < begins_s + CONFIG.window_s:
            others = paths if world.at_s > begins_s + 5 * world.cycle_s else [first]
            for path in others:
                sizes = [size for size in SIZES if size * 1000 <= entitled[path]] or [1]
                for _ in range(4 * len(hosts) - sum(job.account == path for job in world.waiting())):
                    world.submit(
                        Job(
                            name=f"w{world.submitted}",
                            account=path,
                            gpus=rng.choice(sizes),
                            minimum_s=rng.choice([300, 1200, 3600]),
                            length_s=rng.choice([600, 3600, 20_000, 10**9]),
                            submitted_s=world.at_s,
                        )
                    )
            world.tick()
        for path in paths:
            assert world.used[path] >= entitled[path] * CONFIG.window_s * Fraction(9, 10), (seed, path)
