"""What is kept of a cycle says, when it is read, what the cycle itself says; on clusters that go on."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from tests.conftest import FORM
from tests.property.policy.simulation import CONFIG, World, drain_or_repair, random_job, random_world

from gpuledger.policy import written
from gpuledger.policy.cycle import Shared, run_cycle
from gpuledger.policy.published import as_json
from gpuledger.policy.written import write

WORLDS = {"short": 40, "full": 600}[FORM]
TICKS, PARTS = 8, 4


def deep(rng: random.Random, world: World) -> None:
    """Hang accounts below others, at different depths."""
    for path in list(world.shares):
        below = "/".join(rng.choice(["top", "mid", "mid/low"]) for _ in range(rng.randrange(3)))
        if below:
            world.shares[f"{below}/{path}"] = world.shares.pop(path)
            world.used[f"{below}/{path}"] = world.used.pop(path, 0)


@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_kept_says_what_the_cycle_says(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "PIECE", 7)
    seen: Counter[bool] = Counter()
    for seed in range(part, WORLDS, PARTS):
        rng = random.Random(f"written {seed}")
        world = random_world(rng)
        deep(rng, world)
        for _ in range(TICKS):
            for _ in range(rng.randrange(12)):
                job = random_job(rng, world)
                job.gpus, job.minimum_s = rng.choice([1, 2, 4, job.gpus]), rng.choice([0, 60, 900])
                world.submit(job)
            if rng.random() < 0.05:
                drain_or_repair(rng, world)
            state = world.state()
            later = [replace(one, eligible_at_s=state.at_s + 60) for one in state.pending[::9]]
            names = {one.workload for one in later}
            pending = (*later, *(one for one in state.pending if one.workload not in names))
            cycle = run_cycle(replace(state, pending=pending), CONFIG)
            kept = write(cycle.decisions)
            assert kept.read() == as_json(cycle)["decisions"], seed
            assert kept.digest == write(cycle.decisions).digest
            seen.update(isinstance(one, Shared) for one in cycle.decisions)
            world.tick()
    assert min(seen[True], seen[False]) > 100
