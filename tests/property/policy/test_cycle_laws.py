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
LONG = 3
"""Windows in which a gang through the cap is no longer much."""
LENGTHS = (600, 3600, 20_000, 10**9)
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


def ask(rng: random.Random, world: World, sizes: dict[str, list[int]]) -> None:
    """Let accounts ask for more than there is, each in gangs of its own sizes."""
    for path, own in sizes.items():
        for _ in range(world.healthy_milli // 2000 - sum(job.account == path for job in world.waiting())):
            world.submit(
                Job(
                    name=f"w{world.submitted}",
                    account=path,
                    gpus=rng.choice(own),
                    minimum_s=rng.choice([300, 1200, 3600]),
                    length_s=rng.choice(LENGTHS),
                    submitted_s=world.at_s,
                )
            )


def always_asking(
    rng: random.Random, hosts: int, size: int, *, accounts: int = 2
) -> tuple[World, dict[str, Fraction]]:
    """So many accounts or up to six of random shares on so many hosts, and what each is entitled to in milli-GPU."""
    listed = [HostState(host=f"h{n:02}", gpus_milli=size * 1000, gpu_model="a") for n in range(hosts)]
    paths = ["p/x", "p/y", "q/x", "q/y/z", "r", "s"][: rng.randint(accounts, 6)]
    world = World(listed, {path: rng.choice([1, 1, 2, 5]) for path in paths})
    world.cycle_s = CONFIG.quantum_s
    return world, {path: part_of(world.shares, path) * world.healthy_milli for path in paths}


def gangs_of(entitled_milli: Fraction, *, is_large: bool) -> list[int]:
    """Sizes of more than an account is entitled to, where one of up to eight is; else of a quarter of it at most."""
    large = [size for size in (1, 2, 4, 8) if size * 1000 > entitled_milli]
    small = [size for size in (1, 2, 4, 8) if size * 4000 <= entitled_milli]
    return large if large and is_large else small or [1]


def due(entitled_milli: Fraction, windows: int) -> Fraction:
    """What whoever always asks gets at least, in milli-GPU x seconds.

    A tenth is for delta, for what others may hold through the cap ahead, and for the time from a reservation to the
    start. A gang is compared before it starts, so that an account can be one gang through the cap short of its due.
    """
    return entitled_milli * windows * CONFIG.window_s * Fraction(9, 10) - 8000 * CONFIG.protection_cap_s


@pytest.mark.parametrize("part", range(PARTS))
def test_who_always_asks_gets_what_it_is_entitled_to_within_a_window(part: int) -> None:
    """One account has the whole cluster when the others begin to ask; some runs never end by themselves."""
    for seed in range(part, WINDOWS, PARTS):
        rng = random.Random(f"window {seed}")
        world, entitled = always_asking(rng, rng.randint(2, 4), 8)
        begins_s = world.at_s
        first = rng.choice(list(entitled))
        while world.at_s < begins_s + CONFIG.window_s:
            others = entitled if world.at_s > begins_s + 5 * world.cycle_s else [first]
            ask(rng, world, {path: [1, 2, 4, 8] for path in others})
            world.tick()
        for path in entitled:
            assert world.total[path] >= due(entitled[path], 1), (seed, path)


@pytest.mark.parametrize("part", range(PARTS))
def test_gangs_larger_than_an_entitlement_get_it_and_leave_the_others_theirs(part: int) -> None:
    """Some accounts ask for gangs of more than they are entitled to, the smallest always, the others for small ones.

    Hosts are of one GPU, and large gangs leave room for everybody's floor, so that nothing is lost to packing.
    """
    for seed in range(part, WINDOWS, PARTS):
        rng = random.Random(f"large gangs {seed}")
        world, entitled = always_asking(rng, 24, 1, accounts=4)
        smallest = min(entitled, key=lambda path: entitled[path])
        sizes = {
            path: gangs_of(milli, is_large=path == smallest or rng.random() < 0.5)
            for path, milli in entitled.items()
        }
        assert min(sizes[smallest]) * 1000 > entitled[smallest]
        ends_s = world.at_s + LONG * CONFIG.window_s
        while world.at_s < ends_s:
            ask(rng, world, sizes)
            world.tick()
        for path in entitled:
            assert world.total[path] >= due(entitled[path], LONG), (seed, path)


@pytest.mark.parametrize("comes_back", ["large", "small"])
def test_who_comes_back_catches_up_and_pushes_nobody_out_for_a_window(comes_back: str) -> None:
    """One had the cluster for a window; large's gangs are of half the cluster, of which it is entitled to a third."""
    rng = random.Random(comes_back)
    world = World(
        [HostState(host=f"h{n}", gpus_milli=8000, gpu_model="a") for n in range(2)], {"large": 1, "small": 2}
    )
    world.cycle_s, begins_s = CONFIG.quantum_s, world.at_s
    sizes = {"large": [8], "small": [1, 2]}
    entitled = {path: part_of(world.shares, path) * world.healthy_milli for path in sizes}
    got: list[dict[str, Fraction]] = []
    for window in range(3):
        before = dict(world.total)
        while world.at_s < begins_s + (window + 1) * CONFIG.window_s:
            ask(rng, world, {path: own for path, own in sizes.items() if window or path != comes_back})
            world.tick()
        got.append(
            {
                path: (world.total[path] - before.get(path, 0)) / (entitled[path] * CONFIG.window_s)
                for path in sizes
            }
        )
    assert got[0][comes_back] == 0
    assert got[1][comes_back] >= Fraction(9, 10)
    assert min(got[1].values()) >= Fraction(1, 2)
    assert min(got[2].values()) >= Fraction(9, 10)
