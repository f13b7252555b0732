"""A walk that tells many at once what they wait for, against one that decides every turn by itself."""

import random
from collections import Counter
from collections.abc import Iterator

import pytest
from tests.conftest import FORM
from tests.property.policy.simulation import CONFIG, Job, World, drain_or_repair, random_job, random_world

from gpuledger.policy.cycle import ClusterState, Decision, HostState, Shared, parted, run_cycle, tree_of
from gpuledger.policy.decisions import Walk
from gpuledger.policy.fair_share import Turn, order_workloads
from gpuledger.policy.preemption import Preemption
from gpuledger.policy.victims import Ground
from gpuledger.policy.yard import Yard

WORLDS = {"short": 24, "full": 1_200}[FORM]
TICKS, PARTS = 10, 3


class TurnByTurn(Walk):
    """Asks for everybody anew whether there is room, whoever found none before."""

    def __init__(self, state: ClusterState) -> None:
        yard = Yard(state, CONFIG.quantum_s)
        queue, _ = parted(state, yard)
        tree = tree_of(state, queue, CONFIG)
        self.turns: tuple[Turn, ...] = order_workloads(tree, queue, CONFIG)
        super().__init__(self.turns, state, yard, Preemption(tree, state, yard, CONFIG), CONFIG)
        self.own_behind_heads = 0

    def decide(self) -> Iterator[Decision | Shared]:
        for turn in self.turns:
            has_head = self.yard.size_class(turn.workload.gpus_milli) in self._heads
            told = set(self.book.victims)
            yield self.decide_one(turn)
            grounds = [victim.ground for run, victim in self.book.victims.items() if run not in told]
            self.own_behind_heads += has_head and Ground.OWN in grounds
        yield from self.leaving()


def crowd(rng: random.Random, world: World) -> None:
    """Submit many of few kinds; every account has work of several priorities."""
    for _ in range(rng.randint(4, 16)):
        job = random_job(rng, world)
        job.gpus, job.minimum_s = rng.choice([1, 2, 2, 4, job.gpus]), rng.choice([0, 60, 60, 900, 3600])
        job.length_s, job.model, job.priority = (
            20_000,
            rng.choice([None, None, job.model]),
            rng.choice([0, 0, 1, 2]),
        )
        world.submit(job)


def full_world(rng: random.Random) -> World:
    """Full hosts: most of it is protected, and only d has runs that may leave, for its own work."""
    hosts = [HostState(host=f"h{n}", gpus_milli=8000, gpu_model="a") for n in range(rng.randint(2, 5))]
    world = World(hosts, dict.fromkeys("abcd", 1))
    for path in "abcd":
        world.used[path] = rng.choice([0, 1, 2, 4]) * world.healthy_milli * CONFIG.window_s // 8
    for host in hosts:
        free = 8
        while free:
            gpus, is_mine = rng.randint(1, free), rng.random() < 0.5
            job = Job(
                name=f"r{world.submitted}",
                account="d" if is_mine else rng.choice("abc"),
                gpus=gpus,
                minimum_s=30 if is_mine else 3600,
                length_s=20_000,
                submitted_s=world.at_s,
                started_s=world.at_s - 1000,
                hosts={host.host: gpus * 1000},
            )
            world.submit(job)
            free -= gpus
    return world


def crowd_full(rng: random.Random, world: World) -> None:
    """Submit many of few kinds, and now and then what may take from its own account; let a run end."""
    for _ in range(rng.randint(6, 16)):
        job = random_job(rng, world)
        job.gpus, job.minimum_s = rng.choice([1, 1, 2, 2, 4, 8, 16]), rng.choice([0, 60, 60, 900])
        job.account, job.length_s, job.model = rng.choice("abcabcabcd"), 20_000, None
        job.priority = rng.choice([0, 1, 2]) if job.account == "d" else 0
        world.submit(job)
    if rng.random() < 0.5:
        ended = rng.choice([job.name for job in world.running()])
        del world.jobs[ended]


def compare(world: World, seen: Counter[str], seed: int) -> None:
    state = world.state()
    cycle, walk = run_cycle(state, CONFIG), TurnByTurn(state)
    decided = tuple(walk.decide())
    assert cycle.decisions[: len(decided)] == decided, seed
    assert cycle.reservations == walk.reservations(), seed
    seen["own behind heads"] += walk.own_behind_heads
    seen["told with others"] += sum(isinstance(one, Shared) for one in decided)


@pytest.mark.parametrize("part", range(PARTS))
def test_whoever_is_told_with_others_is_told_what_a_turn_of_its_own_would_say(part: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(part, WORLDS, PARTS):
        rng = random.Random(f"turns {seed}")
        world = random_world(rng)
        for _ in range(TICKS):
            crowd(rng, world)
            if rng.random() < 0.05:
                drain_or_repair(rng, world)
            world.at_s += rng.choice([0, 0, 60, 240, 900])
            compare(world, seen, seed)
            world.tick()
    assert seen["told with others"]
    assert seen["own behind heads"]


@pytest.mark.parametrize("part", range(PARTS))
def test_whoever_found_no_room_is_decided_anew_when_some_is_given_back(part: int) -> None:
    """One who takes a large run of its own account leaves room for others; so does one who starts elsewhere."""
    seen: Counter[str] = Counter()
    for seed in range(part, WORLDS * 2, PARTS):
        rng = random.Random(f"given back {seed}")
        world = full_world(rng)
        for _ in range(4):
            crowd_full(rng, world)
            compare(world, seen, seed)
            world.tick()
    assert seen["told with others"]
    assert seen["own behind heads"]
