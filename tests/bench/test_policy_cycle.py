"""A full cycle on 2,000 hosts with 5,000 runs: how it grows with the queue, against n log n in the same run."""

import math
import random
import time

import pytest
from tests.conftest import FORM

from gpuledger.policy.cycle import (
    AccountState,
    ClusterState,
    HostState,
    PendingWorkload,
    PolicyConfig,
    RunningRun,
    run_cycle,
)
from gpuledger.policy.published import as_json

pytestmark = [pytest.mark.bench, pytest.mark.timeout(3600)]

HOSTS, RUNS, ACCOUNTS, GPUS_PER_HOST = 2_000, 5_000, 200, 8
QUEUES = {"short": (1_000, 10_000), "full": (1_000, 10_000, 100_000)}[FORM]
ROUNDS = 3
WEEK_S, HOUR_S, NOW_S = 7 * 86_400, 3_600, 1_800_000_000
GROWTH_MAX = 1.5
"""How much faster than n log n the time may grow beyond that of an empty queue."""


def cluster(pending: int) -> ClusterState:
    """200 accounts in three levels; as in a cycle that follows another, few runs could leave for somebody."""
    rng = random.Random(1)
    paths = [f"org/program{n % 10}/project{n:03}" for n in range(ACCOUNTS)]
    healthy_milli = HOSTS * GPUS_PER_HOST * 1000
    shares = {path: rng.randint(1, 9) for path in paths}
    return ClusterState(
        cluster="c",
        at_s=NOW_S,
        healthy_milli=healthy_milli,
        capacity_window_gpu_ms=healthy_milli * WEEK_S,
        accounts=tuple(
            AccountState(
                account=path,
                share=share,
                used_gpu_ms=healthy_milli * WEEK_S * share * rng.randint(5, 15) // 10_000,
                demand_milli=200_000,
                unallocated_gpu_ms=rng.randrange(10**12),
            )
            for path, share in shares.items()
        ),
        running=runs(rng, paths),
        pending=tuple(
            PendingWorkload(
                workload=f"w{n:06}",
                account=rng.choice(paths),
                gpus_milli=1000 * rng.choice([1, 1, 2, 4, 8, 8, 16, 64, 128]),
                submitted_at_s=NOW_S - rng.randrange(86_400),
                eligible_at_s=NOW_S - rng.randrange(86_400),
                priority=rng.choice([0, 0, 0, 1]),
                minimum_runtime_s=rng.choice([0, 600, HOUR_S, 4 * HOUR_S, 8 * HOUR_S]),
            )
            for n in range(pending)
        ),
        hosts=tuple(
            HostState(host=f"h{n:04}", gpus_milli=GPUS_PER_HOST * 1000, gpu_model="h100")
            for n in range(HOSTS)
        ),
    )


def runs(rng: random.Random, paths: list[str]) -> tuple[RunningRun, ...]:
    """Runs of up to 8 GPUs, host after host."""
    free = {f"h{n:04}": GPUS_PER_HOST for n in range(HOSTS)}
    hosts = list(free)
    found: list[RunningRun] = []
    while len(found) < RUNS and hosts:
        host = hosts[-1]
        gpus = min(rng.choice([1, 2, 2, 4, 4, 8]), free[host])
        free[host] -= gpus
        if not free[host]:
            hosts.pop()
        started_s = NOW_S - rng.randrange(8 * HOUR_S + 600)
        found.append(
            RunningRun(
                workload=f"r{len(found):05}",
                run="1",
                account=rng.choice(paths),
                gpus_milli=gpus * 1000,
                started_at_s=started_s,
                protected_until_s=started_s + 8 * HOUR_S,
                klass=rng.choice(["allocated"] * 49 + ["unallocated"]),  # type: ignore[arg-type]
                placement={host: gpus * 1000},
            )
        )
    return tuple(found)


def seconds_of(state: ClusterState) -> tuple[float, int]:
    """Return the processor time of a cycle, published, at its best of some rounds, and its decisions."""
    best = math.inf
    for _ in range(ROUNDS):
        begun = time.process_time()
        published = as_json(run_cycle(state, PolicyConfig()))
        best = min(best, time.process_time() - begun)
    return best, len(published["decisions"])


def test_a_cycle_grows_no_faster_than_n_log_n() -> None:
    idle_s, _ = seconds_of(cluster(0))
    print(f"\n  0 waiting: {idle_s:.2f} s")
    found = []
    for pending in QUEUES:
        taken_s, decisions = seconds_of(cluster(pending))
        assert decisions >= pending
        found.append((taken_s - idle_s) / (pending * math.log2(pending)))
        print(
            f"{pending:>7} waiting: {taken_s:.2f} s, {found[-1] * 1e6:.2f} us per n log n beyond an empty queue"
        )
    assert found[-1] <= GROWTH_MAX * found[0]
