"""Laws of users who keep asking, on whole simulations: the stock is bounded, and jobs are the same in each world."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conftest import FORM
from tests.simulating import Scripted, at_once

from gpuledger.simulator.engine import simulate
from gpuledger.simulator.facts import Cancelled, Fact, HostChanged, HostCondition, Left, Submitted
from gpuledger.simulator.jobs import Job
from gpuledger.simulator.scenario import Scenario
from gpuledger.simulator.scenario_file import read_scenario
from gpuledger.simulator.worlds.protocol import Cluster, Orders, World
from gpuledger.simulator.worlds.registry import WORLDS, make_world

HOUR_S = 3_600
DAYS = {"short": 7, "full": 30}[FORM]
SEEDS = {"short": (1,), "full": (1, 2, 3)}[FORM]
WORLDS_TRIED = {"short": ("fifo", "old"), "full": tuple(WORLDS)}[FORM]


def stocks(scenario: Scenario, facts: Iterator[Fact]) -> list[float]:
    """Return (running + pending) / healthy at each full hour that is measured."""
    jobs: dict[str, int] = {}
    outstanding = 0
    healthy = {host.host: host.gpus_milli for host in scenario.hosts}
    installed = dict(healthy)
    found, at_s = [], scenario.measured_from_s
    for fact in facts:
        while fact.at_s > at_s:
            found.append(outstanding / sum(healthy.values()))
            at_s += HOUR_S
        match fact:
            case Submitted(job=job):
                jobs[job.job] = job.gpus_milli
                outstanding += job.gpus_milli
            case Cancelled(job=name) | Left(job=name, requeued=False):
                outstanding -= jobs.pop(name)
            case HostChanged(host=host, condition=condition):
                healthy[host] = 0 if condition is HostCondition.DOWN else installed[host]
            case _:
                pass
    return found


@pytest.mark.parametrize("world", WORLDS_TRIED)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_stock_of_the_institute_is_two_to_three_times_the_supply_without_a_trend(
    world: str, seed: int
) -> None:
    institute = replace(read_scenario("institute"), days=DAYS)
    ratios = stocks(institute, simulate(institute, make_world(world, institute, seed), seed=seed))
    assert len(ratios) >= DAYS * 24 - 1
    assert 2 <= min(ratios) <= max(ratios) <= 3
    half = len(ratios) // 2
    earlier, later = sum(ratios[:half]) / half, sum(ratios[half:]) / (len(ratios) - half)
    assert abs(earlier - later) < 0.2
    assert sum(ratios) / len(ratios) == pytest.approx(2.5, abs=0.15)


def submitted(scenario: Scenario, world: World) -> dict[str, Job]:
    facts = simulate(scenario, world, seed=5)
    return {fact.job.job: replace(fact.job, submitted_s=0) for fact in facts if isinstance(fact, Submitted)}


def latest_first(cluster: Cluster) -> Orders:
    return at_once(replace(cluster, waiting=dict(reversed(cluster.waiting.items()))))


def test_the_jobs_of_a_user_are_the_same_in_two_worlds() -> None:
    """Where the latest comes first other jobs start, so that users ask at other times."""
    small = replace(read_scenario("institute-88"), days=3, warm_up_days=0)
    one, other = (
        submitted(small, make_world("fifo", small, 5)),
        submitted(small, Scripted(otherwise=latest_first)),
    )
    both = one.keys() & other.keys()
    assert len(both) > 300
    assert one.keys() != other.keys()
    assert {name: one[name] for name in both} == {name: other[name] for name in both}


PROGRAM = """
import hashlib
from dataclasses import replace
from gpuledger.simulator.engine import simulate
from gpuledger.simulator.scenario_file import read_scenario
from gpuledger.simulator.worlds.registry import WORLDS, make_world
small = replace(read_scenario("institute-88"), days=2, warm_up_days=0)
told = hashlib.sha256()
for fact in simulate(small, make_world("fifo", small, 1)):
    told.update(repr(fact).encode())
print(told.hexdigest())
"""


def test_demand_is_the_same_bytes_whatever_the_order_of_hashes(tmp_path: Path) -> None:
    said = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for hash_seed in ("0", "12345")
    }
    assert len(said) == 1
