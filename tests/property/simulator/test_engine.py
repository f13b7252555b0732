"""Laws of the engine: nothing is lost, nothing is counted twice, and every second is as a slow count says."""

import hashlib
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.simulator.drawing import HOSTS, OUTAGES, ROWS, break_hosts, demand
from tests.property.simulator.seconds import Seconds
from tests.simulating import T0, Whims, job, scenario, told

from gpuledger.simulator.engine import simulate
from gpuledger.simulator.facts import Departure, Fact, HostChanged, Left, Started
from gpuledger.simulator.jobs import Job
from gpuledger.simulator.scenario import FaultModel, Scenario
from gpuledger.simulator.worlds.protocol import Cluster, Orders, World
from gpuledger.simulator.worlds.registry import WORLDS, make_world

Rows = Sequence[tuple[int, dict[str, Any], dict[str, Any] | None]]
Outages = Sequence[tuple[str, int, int, int]]
UNTIL_S = 400


def few(facts: Sequence[Fact]) -> list[Fact]:
    return [fact for fact in facts if fact.at_s < T0 + UNTIL_S]


@given(ROWS, OUTAGES, st.sampled_from([0, 1, 7]), st.integers(0, 9))
def test_as_a_count_of_every_second(rows: Rows, broken: Outages, grace_s: int, seed: int) -> None:
    slow = Seconds(HOSTS, demand(rows), broken, grace_s).play(Whims(seed), UNTIL_S)
    with pytest.MonkeyPatch.context() as patch:
        break_hosts(patch, broken)
        played = scenario(demand(rows), hosts=HOSTS, grace_s=grace_s)
        facts = simulate(played, Whims(seed))
        quick = few(list(islice(facts, len(slow) + 1)))
    assert told(quick) == told(slow)
    assert quick == slow


class Keeper(Whims):
    """It keeps its own account of every GPU from what it is told, and compares whenever it is asked."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.installed = {f"h{n}": round(gpus * 1000) for n, gpus in enumerate(HOSTS)}
        self.held: dict[str, Counter[str]] = {host: Counter() for host in self.installed}
        self.state = dict.fromkeys(self.installed, "healthy")
        self.where: dict[str, Any] = {}
        self.started: dict[str, Started] = {}
        self.took = 0
        self.since_s = T0
        self.spent: Counter[str] = Counter()
        """milli-GPU x seconds by state."""

    def told(self, fact: Fact) -> None:
        for host in self.installed:
            held = sum(self.held[host].values())
            self.spent["held"] += held * (fact.at_s - self.since_s)
            self.spent[self.state[host]] += (self.installed[host] - held) * (fact.at_s - self.since_s)
        self.since_s = fact.at_s
        match fact:
            case Started():
                assert fact.job not in self.where
                self.where[fact.job] = fact.placement
                self.started[fact.job] = fact
                for host, milli in fact.placement.items():
                    assert self.state[host] == "healthy"
                    self.held[host][fact.job] = milli
            case Left():
                spent_s = fact.kept_s + fact.lost_s + fact.loading_s + fact.idle_s
                self.took += spent_s * sum(self.where[fact.job].values())
                for host in self.where.pop(fact.job):
                    del self.held[host][fact.job]
            case HostChanged():
                assert self.state[fact.host] != fact.condition
                self.state[fact.host] = fact.condition
            case _:
                pass

    def decide(self, cluster: Cluster) -> Orders:
        assert {name: run.placement for name, run in cluster.running.items()} == self.where
        for name, host in cluster.hosts.items():
            held = sum(self.held[name].values())
            assert 0 <= held <= self.installed[name]
            assert host.condition == self.state[name]
            assert host.free_milli == (0 if self.state[name] == "down" else self.installed[name] - held)
            assert not (self.state[name] == "down" and held)
        return super().decide(cluster)


@given(ROWS, OUTAGES, st.integers(0, 99))
def test_every_second_of_every_gpu_is_in_one_state(rows: Rows, broken: Outages, seed: int) -> None:
    """What runs held is what the ends of runs say they took; the rest was free, draining or down."""
    world = Keeper(seed)
    with pytest.MonkeyPatch.context() as patch:
        break_hosts(patch, broken)
        list(islice(simulate(scenario(demand(rows), hosts=HOSTS), world), 300))
    running = sum(
        sum(placement.values()) * (world.since_s - world.started[name].at_s)
        for name, placement in world.where.items()
    )
    assert world.spent["held"] == world.took + running
    span_s = world.since_s - T0
    assert sum(world.spent.values()) == span_s * sum(world.installed.values())


@given(ROWS, OUTAGES, st.integers(0, 99))
def test_the_time_of_each_run_is_all_accounted_for_and_done_work_is_all_of_it(
    rows: Rows, broken: Outages, seed: int
) -> None:
    since: dict[str, int] = {}
    kept: Counter[str] = Counter()
    asked: dict[str, Job] = {}
    over: set[str] = set()
    with pytest.MonkeyPatch.context() as patch:
        break_hosts(patch, broken)
        for fact in islice(simulate(scenario(demand(rows), hosts=HOSTS), Whims(seed)), 300):
            if isinstance(fact, Started):
                assert fact.job not in over
                since[fact.job] = fact.at_s
            elif isinstance(fact, Left):
                parts = (fact.kept_s, fact.lost_s, fact.loading_s, fact.idle_s)
                assert min(parts) >= 0
                assert sum(parts) == fact.at_s - since[fact.job]
                kept[fact.job] += fact.kept_s
                assert kept[fact.job] <= asked[fact.job].work_s
                if fact.why is Departure.DONE:
                    assert kept[fact.job] == asked[fact.job].work_s
                    assert not fact.lost_s
                if not fact.requeued:
                    over.add(fact.job)
            elif hasattr(fact, "job") and isinstance(fact.job, Job):
                asked[fact.job.job] = fact.job


def demanding(count: int) -> list[Job]:
    """Jobs for 32 GPUs, more than fit."""
    return [
        job(
            f"j{n}",
            (1, 2, 4, 8, 16, 32)[n * n % 6],
            600 + 977 * n % 20_000,
            at_s=150 * n,
            account=f"org/a{n % 3}",
            user=f"u{n % 7}",
            startup_s=60,
            checkpoint_s=900,
            idle_s=n % 5 * 100,
            patience_s=90_000 if n % 4 else None,
            time_limit_s=30_000 if n % 3 else None,
            minimum_runtime_s=(0, 600, 3600)[n % 3],
            priority=n % 3,
            resumable=n % 7 != 0,
        )
        for n in range(count)
    ]


def digest(world: str, seed: int) -> str:
    """Of all facts of a simulation with faults, as they are written."""
    faults = FaultModel(mtbf_s=200_000, drain_mtbf_s=150_000)
    jobs = demanding({"whims": 15, "gpuledger": 60}.get(world, 200))  # these two are asked again and again
    played = scenario(jobs, hosts=(8,) * 4, faults=faults)
    return _digest(played, Whims(seed) if world == "whims" else make_world(world, played, seed), seed)


def _digest(played: Scenario, world: World, seed: int) -> str:
    told_ = hashlib.sha256()
    for fact in simulate(played, world, seed=seed):
        told_.update(repr(fact).encode())
    return told_.hexdigest()


@pytest.mark.parametrize("world", ["whims", *WORLDS])
def test_the_same_seed_brings_the_same_bytes_whatever_the_order_of_hashes(
    world: str, repository: Path
) -> None:
    here = digest(world, 1)
    assert here == digest(world, 1)
    assert here != digest(world, 2)
    code = f"from tests.property.simulator.test_engine import digest; print(digest({world!r}, 1))"
    there = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") == "0" else "0"},
        cwd=repository,
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.strip() == here


@pytest.mark.parametrize("world", WORLDS)
def test_no_world_looks_at_what_it_may_not_know(world: str) -> None:
    """Until the first run ends, other work, loading, idling and patience change none of its orders."""
    orders: defaultdict[int, list[Fact]] = defaultdict(list)
    for factor in (1, 2):
        jobs = [
            job(
                f"j{n}",
                (1, 2, 4, 8, 16)[n % 5],
                factor * 50_000,
                at_s=20 * n,
                account=f"org/a{n % 3}",
                startup_s=factor * 30,
                idle_s=factor * 40,
                patience_s=factor * 90_000,
                time_limit_s=200_000 + n,
                priority=n % 3,
            )
            for n in range(200)
        ]
        played = scenario(jobs, hosts=(8,) * 8)
        for fact in simulate(played, make_world(world, played, 1)):
            if isinstance(fact, Left):
                break
            if isinstance(fact, Started):
                orders[factor].append(fact)
    assert orders[1] == orders[2]
    assert len(orders[1]) > 8
