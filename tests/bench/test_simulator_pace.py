"""Jobs per second of the world ``gpuledger``, the full policy, against AccaSim 1.1.3 on the same submissions.

The submissions are those that the world ``fifo`` brings about in the scenario ``institute`` (1,024 GPUs, two and a half
times as many asked for at any moment), written as SWF: both simulators read that file. In the full form these are all
of thirty days and the week before. AccaSim decides by EASY backfilling with first fit, our world by what a cluster in
service decides by; a run whose GPUs it takes begins anew here, as the format knows no checkpoints, so that it has up to
twice as many runs to simulate.

What was realised in one order is late enough for another: where AccaSim replays it, fewer wait than did under ``fifo``,
and far fewer than in a queue that grows. So beside the ratio it is printed how many waited.
"""

import gc
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.conftest import FORM

from gpuledger.simulator.engine import simulate
from gpuledger.simulator.facts import Left, Started, Submitted
from gpuledger.simulator.playing import Play, found, prepare
from gpuledger.simulator.swf import write_swf
from gpuledger.simulator.worlds.registry import make_world

pytestmark = [pytest.mark.bench, pytest.mark.timeout(7200)]

HOSTS, GPUS_PER_HOST = 128, 8
JOBS = {"short": 1_000, "full": 20_000}[FORM]
DAYS = {"short": 1, "full": 30}[FORM]
ROUNDS = 3
PHILLY_JOBS, PHILLY_LEAST = 82_247, 1


class Workload(NamedTuple):
    """How the submissions are put, and what is asked of our pace as a multiple of AccaSim's.

    Args:
        stretch: Times from the beginning are multiplied by this.
        wanted: The ratio that is wanted.
        least: The ratio that is gated on.
        jobs: So many of the submissions, the first; None for all.
    """

    stretch: float
    wanted: float
    least: float
    jobs: int | None = JOBS


WORKLOADS = {
    "contended": Workload(1, 20, 0.05, jobs={"short": JOBS, "full": None}[FORM]),
    "contended, submitted 2.5 times as fast": Workload(0.4, 20, 0.06),
    "uncontended": Workload(3, 1, 0.2),
}


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The submissions of the institute under ``fifo``, as lines of an SWF file."""
    scenario = prepare(Play(scenario="institute", world="fifo", days=DAYS, settings={}))
    path = tmp_path_factory.mktemp("swf") / "institute.swf"
    with path.open("w", encoding="ascii") as out:
        write_swf(simulate(scenario, make_world("fifo", scenario, scenario.seed)), scenario, out)
    return path.read_text(encoding="ascii").splitlines()


def put(lines: list[str], stretch: float, jobs_max: int | None, folder: Path) -> tuple[Path, int]:
    """Write the first submissions at another pace, and a scenario of them; return the SWF file, and how many."""
    header = [line for line in lines if line.startswith(";")]
    jobs = [line.split(" ") for line in lines if not line.startswith(";")][:jobs_max]
    assert jobs_max in (None, len(jobs))
    swf = folder / "workload.swf"
    put_lines = [" ".join((number, str(int(int(at) * stretch)), *rest)) for number, at, *rest in jobs]
    swf.write_text("\n".join([*header, *put_lines, ""]), encoding="ascii")
    (folder / "replayed.yaml").write_text(
        f"cluster: {{hosts: {HOSTS}, gpus_per_host: {GPUS_PER_HOST}}}\n"
        "days: 365\n"  # it is over when all jobs are
        "demand: {trace: swf, path: workload.swf}\n"
    )
    return swf, len(jobs)


def ours(folder: Path, jobs: int) -> tuple[float, int]:
    """Return processor time, from reading the file to the last end, and how many runs there were."""
    gc.collect()
    begun = time.process_time()
    scenario = found(str(folder / "replayed.yaml"))
    facts = list(simulate(scenario, make_world("gpuledger", scenario, 1)))
    spent = time.process_time() - begun
    assert sum(isinstance(fact, Submitted) for fact in facts) == jobs
    assert sum(isinstance(fact, Left) and not fact.requeued for fact in facts) == jobs
    return spent, sum(isinstance(fact, Started) for fact in facts)


def theirs(swf: Path, *, jobs: int, hosts: int = HOSTS, rounds: int = ROUNDS) -> dict[str, float]:
    """Return what AccaSim says of the same file, the fastest of some runs: each takes some tenths of a second."""
    command = [sys.executable, "-m", "tests.bench.accasim_run", str(swf), str(hosts), str(GPUS_PER_HOST)]
    runs: list[dict[str, float]] = []
    for _ in range(rounds):
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout))
    said = min(runs, key=lambda run: run["s"])
    assert (said["dispatched"], said["rejected"]) == (jobs, 0)
    return said


@pytest.mark.parametrize("name", WORKLOADS)
def test_jobs_per_second_against_accasim(name: str, lines: list[str], tmp_path: Path) -> None:
    workload = WORKLOADS[name]
    swf, jobs = put(lines, workload.stretch, workload.jobs, tmp_path)
    said = theirs(swf, jobs=jobs)
    spent, runs = ours(tmp_path, jobs)
    ratio = said["s"] / spent
    print(
        f"{name}: {ratio:.3f} x the jobs/s of AccaSim (wanted {workload.wanted:g}, gated at {workload.least:g});"
        f" {jobs / spent:,.0f} jobs/s in {runs:,} runs against {jobs / said['s']:,.0f} with {said['queue_mean']:,.0f}"
        f" waiting on average, {said['queue_most']:,.0f} at most"
    )
    assert ratio >= workload.least


def test_the_whole_philly_trace_against_accasim(tmp_path: Path) -> None:
    """82,247 jobs on 2,490 GPUs, of which nearly all start at once; AccaSim has no host of 2 GPUs."""
    gc.collect()
    begun = time.process_time()
    scenario = found("philly")
    jobs = sum(
        isinstance(fact, Submitted) for fact in simulate(scenario, make_world("gpuledger", scenario, 1))
    )
    spent = time.process_time() - begun
    swf = tmp_path / "philly.swf"
    with swf.open("w", encoding="ascii") as out:
        submitted = (Submitted(at_s=job.submitted_s, job=job) for job in scenario.demand(1).first())
        assert write_swf(submitted, scenario, out) == jobs == PHILLY_JOBS
    said = theirs(swf, jobs=jobs, hosts=311, rounds=1)
    ratio = said["s"] / spent
    print(
        f"philly: {ratio:.2f} x the jobs/s of AccaSim (wanted 1, gated at {PHILLY_LEAST}); {jobs / spent:,.0f} jobs/s"
        f" in {spent:.1f} s of processor time against {jobs / said['s']:,.0f}"
    )
    assert ratio >= PHILLY_LEAST
