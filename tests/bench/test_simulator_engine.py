"""What an event costs the engine and a world as the queue grows: no more than the logarithm does."""

import gc
import math
import random
import time
from collections.abc import Iterator
from itertools import islice

import pytest
from tests.simulating import job, scenario

from gpuledger.simulator.engine import simulate
from gpuledger.simulator.facts import Fact, Left, Started
from gpuledger.simulator.scenario import FaultModel
from gpuledger.simulator.worlds.registry import make_world

pytestmark = [pytest.mark.bench, pytest.mark.timeout(3600)]

HOSTS = 128
PENDING = (1_000, 10_000, 100_000)
EVENTS, ROUNDS = 2_000, 3
GROWTH_MAX = 1.5
"""How much faster than the logarithm of the queue the cost of an event may grow."""
POLICY_EVENTS = 60


def crowded(pending: int, world: str = "fifo") -> Iterator[Fact]:
    """1,024 GPUs, and so many jobs at once at the beginning, of all sizes, each with a time limit of its own."""
    rng = random.Random(1)
    jobs = [
        job(
            f"j{n}",
            rng.choice([1, 1, 1, 2, 2, 4, 4, 8, 8, 16, 32, 64]),
            work_s := 600 + int(rng.expovariate(1 / 7_200)),
            time_limit_s=work_s * rng.randint(1, 4),
            startup_s=60,
            checkpoint_s=1_800,
        )
        for n in range(pending)
    ]
    faults = FaultModel(mtbf_s=60 * 86_400, drain_mtbf_s=30 * 86_400)
    played = scenario(jobs, hosts=(8,) * HOSTS, days=365, faults=faults)
    return simulate(played, make_world(world, played, 1))


def cost_s(pending: int, world: str = "fifo", events: int = EVENTS) -> tuple[float, float]:
    """Processor time of an event with so many pending, and jobs that ended for each second of it."""
    facts = crowded(pending, world)
    next(
        fact for fact in facts if isinstance(fact, Left)
    )  # everybody is in the queue, and whoever fits has started
    gc.collect()
    gc.freeze()
    begun = time.process_time()
    seen = list(islice(facts, min(pending, events)))
    spent = time.process_time() - begun
    gc.unfreeze()
    assert sum(isinstance(fact, Started) for fact in seen) > len(seen) / 5
    return spent / len(seen), sum(isinstance(fact, Left) for fact in seen) / spent


def test_cost_of_an_event_by_length_of_the_queue() -> None:
    measured = {pending: [cost_s(pending) for _ in range(ROUNDS)] for pending in PENDING}
    cost = {pending: min(each for each, _ in rounds) for pending, rounds in measured.items()}
    jobs = {pending: max(each for _, each in rounds) for pending, rounds in measured.items()}
    for pending in PENDING:
        growth = cost[pending] / cost[PENDING[0]]
        allowed = GROWTH_MAX * math.log(pending) / math.log(PENDING[0])
        print(
            f"pending {pending:7,}: {growth:.2f} x the cost of an event at {PENDING[0]:,}"
            f" (allowed {allowed:.2f}); {jobs[pending]:,.0f} jobs/s"
        )
        assert growth <= allowed


def test_cost_of_an_event_under_the_policy_by_length_of_the_queue() -> None:
    cost = {pending: cost_s(pending, "gpuledger", POLICY_EVENTS)[0] for pending in PENDING}
    for pending in PENDING:
        growth = cost[pending] / cost[PENDING[0]]
        allowed = GROWTH_MAX * math.log(pending) / math.log(PENDING[0])
        print(
            f"gpuledger, pending {pending:7,}: {growth:.2f} x the cost of an event at {PENDING[0]:,}"
            f" (allowed {allowed:.2f}); {cost[pending] * 1e3:.1f} ms"
        )
        assert growth <= allowed
