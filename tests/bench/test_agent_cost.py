"""What the agent costs its host: seconds of processor per second of the clock."""

import time
from pathlib import Path

import pytest
from tests.unit.agent.recorded import Bindings, Card, Clock

from gpuledger.agent.checking import Health
from gpuledger.agent.nvml import Nvml
from gpuledger.agent.owners import Slurm
from gpuledger.agent.sampler import Config, Parts, Sampler
from gpuledger.agent.spool import Spool

pytestmark = pytest.mark.bench

GPUS = 8
STEPS = {"short": 720, "full": 24 * 720}
"""Readings, five seconds apart: an hour, or a day."""

SHARE_MAX = 0.01


def test_the_agent_costs_under_one_percent_of_a_core(tmp_path: Path, test_form: str) -> None:
    """Eight devices, read every five seconds, a message a minute; the driver's own work is not counted."""
    clock = Clock()
    cards = [
        Card(f"GPU-{n}", f"00000000:{n}8:00.0", pids=(1000 + n,), shares=(91.5, 40.25, 12.0))
        for n in range(GPUS)
    ]
    driver = Nvml(Bindings(cards, clock.sleep), clock.sleep)
    for pid in range(1000, 1000 + GPUS):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "cgroup").write_text("0::/system.slice/slurmstepd.scope/job_4711/step_0\n")
    spool, health = Spool(tmp_path / "spool", 64 << 20), Health(tmp_path / "health.json")
    parts = Parts(driver, Slurm(proc=tmp_path), spool, health, clock, clock.sleep, print)
    steps = iter(range(STEPS[test_form]))
    sampler = Sampler(Config(cluster="west", host="n1"), parts)
    began, cpu = clock.now(), time.process_time()
    sampler.run(lambda: next(steps, None) is None)
    used_s, passed_s = time.process_time() - cpu, (clock.now() - began).total_seconds()
    cpu = time.process_time()
    for device in driver.devices() * STEPS[test_form]:
        driver.read(device)
    reading_s = time.process_time() - cpu
    messages = len(spool.waiting(100_000))
    print(
        f"\n{messages} messages of {passed_s:,.0f} s cost {used_s:.2f} s of processor: {used_s / passed_s:.3%} of a"
        f" core, at most {SHARE_MAX:.0%} allowed; {reading_s / passed_s:.3%} of it is asking the driver"
    )
    assert messages >= STEPS[test_form] // 12
    assert used_s / passed_s < SHARE_MAX
