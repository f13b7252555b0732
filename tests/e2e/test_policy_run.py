"""``gpuledger policy run`` as processes of their own: lead, stand by, be killed, take over, end when asked to.

The interval is an hour, so whatever is decided between two cycles is decided by event.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
import sqlalchemy as sa
from tests.e2e.servers import api

from gpuledger.cli.ending import TERMINATED
from gpuledger.database.engine import make_engine, reading
from gpuledger.events import host, workload
from gpuledger.events.budget import ShareSet
from gpuledger.events.envelope import make
from gpuledger.events.registry import Fact
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock, seconds
from gpuledger.ledger import cycles, policy_status
from gpuledger.policy.leading import GAP_S, POLL_S
from gpuledger.policy.replaying import replay

CLUSTER, HOUR = "c", 3600
PATIENCE_S = 60
BY_EVENT_S = 20 * (POLL_S + GAP_S)
"""An event is decided within some looks for it, on a machine that has much else to do; an interval is 3600 s."""


@dataclass
class Site:
    """A cluster of one host of 8 GPUs, its ledger, and the processes that want to lead it."""

    url: str
    engine: sa.Engine
    folder: Path
    processes: list["subprocess.Popen[bytes]"] = field(default_factory=list)
    told: int = 0

    def tell(self, *facts: Fact, ago_s: int = 0) -> None:
        self.told += 1
        at_s = seconds(SystemClock().now()) - ago_s
        events = [
            make(id=f"{self.told}/{n}", source="e2e", at_s=at_s, data=one)[0] for n, one in enumerate(facts)
        ]
        Intake(self.engine, SystemClock(), Calendar()).take(events)

    def submit(self, name: str, gpus: int) -> None:
        fact = workload.Submitted(
            cluster=CLUSTER, workload=name, account="c/team", user="-", gpus_milli=gpus * 1000, minimum_runtime_s=600
        )  # fmt: skip
        self.tell(fact)

    def gpuledger(self, *words: str) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(
            [sys.executable, "-m", "gpuledger", *words],
            env=self.environment,
            capture_output=True,
            check=False,
        )

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "GPULEDGER_DATABASE_URL": self.url, "GPULEDGER_HOME": str(self.folder / "home")}

    def run(self) -> "subprocess.Popen[bytes]":
        """Start a process that leads the cluster, or stands by."""
        with self.log(len(self.processes)).open("wb") as said:
            self.processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "gpuledger", "policy", "run", "--cluster", CLUSTER, "--every", "3600"],
                    env=self.environment, stdout=said, stderr=subprocess.STDOUT,
                )
            )  # fmt: skip
        return self.processes[-1]

    def log(self, process: int) -> Path:
        return self.folder / f"policy-{process}.log"

    def says(self, process: int, what: str) -> bool:
        return what in self.log(process).read_text(errors="replace")

    def leader(self) -> str:
        with reading(self.engine) as reader:
            return next((one.leader or "" for one in policy_status.read(reader)), "")

    def word(self) -> cycles.Word | None:
        with reading(self.engine) as reader:
            return cycles.newest_word(reader, CLUSTER, at_s=seconds(SystemClock().now()))

    def is_ordered(self, name: str) -> bool:
        """Tell whether a workload is ordered to start."""
        word = self.word()
        return word is not None and any(d["workload"] == name and d["action"] == "start" for d in word.said())


def wait_for(what: Callable[[], bool], within_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture
def site(database_url: str, tmp_path: Path) -> Iterator[Site]:
    """A cluster on which one workload of 6 GPUs waits."""
    engine = make_engine(database_url)
    found = Site(database_url, engine, tmp_path)
    found.tell(host.Registered(cluster=CLUSTER, host="h1", gpus=8, gpu_model="x"), ago_s=30 * 24 * HOUR)
    found.tell(ShareSet(account="c/team", share=1, reason="test", by="test"), ago_s=HOUR)
    found.submit("w-first", 6)
    try:
        yield found
    finally:
        for process in found.processes:
            process.kill()
            process.wait()
        engine.dispose()


@contextmanager
def scraped(site: Site) -> Iterator[Callable[[], dict[str, Any]]]:
    """Serve the API, and give what its metrics say of the policy."""
    with api(site.url, site.folder / "api.log") as url:
        for path in ("/healthz", "/readyz"):
            assert httpx2.get(url + path, trust_env=False).status_code == httpx2.codes.OK

        def read() -> dict[str, Any]:
            text = httpx2.get(f"{url}/metrics", trust_env=False).text
            lines = (
                line.rpartition(" ") for line in text.splitlines() if line.startswith("gpuledger_policy")
            )
            return {name.partition("{")[0]: float(value) for name, _, value in lines}

        yield read


def test_processes_lead_stand_by_take_over_and_end_when_they_are_asked_to(site: Site) -> None:
    first = site.run()
    wait_for(lambda: site.is_ordered("w-first"))
    assert site.leader().endswith(f" {first.pid}")
    site.run()
    wait_for(lambda: site.says(1, "stands by for c"))

    site.submit("w-debug", 1)  # the interval is over in an hour
    wait_for(lambda: site.is_ordered("w-debug"), BY_EVENT_S)
    started = workload.Started(
        cluster=CLUSTER, workload="w-first", run="1", attempt=1, gpus_milli=6000, hosts=["h1"]
    )
    site.tell(started)
    site.submit("w-wide", 7)
    site.tell(workload.Ended(cluster=CLUSTER, workload="w-first", run="1", reason="completed"))
    wait_for(lambda: site.is_ordered("w-wide"), BY_EVENT_S)
    word = site.word()
    assert word is not None
    amended = [one.id for one in word.amendments]
    assert amended  # not one more full cycle
    with reading(site.engine) as reader:
        assert all(replay(reader, name).ok for name in (word.issued.id, *amended))

    first.kill()
    second = site.processes[1]
    wait_for(lambda: site.leader().endswith(f" {second.pid}"))
    site.tell(workload.Ended(cluster=CLUSTER, workload="w-wide", reason="cancelled"))
    site.submit("w-after", 7)
    wait_for(lambda: site.is_ordered("w-after"), BY_EVENT_S)

    with scraped(site) as metrics:
        said = metrics()
        assert said["gpuledger_policy_leader"] == 1
        assert said["gpuledger_policy_cycles_total"] >= 2  # of each leader one
        assert said["gpuledger_policy_amendments_total"] >= len(amended)
        assert said["gpuledger_policy_cycle_age_seconds"] < HOUR
        assert site.gpuledger("policy", "status", "--max-age", str(HOUR)).returncode == 0
        second.terminate()
        assert second.wait(PATIENCE_S) == TERMINATED
        wait_for(lambda: site.leader() == "")
        assert metrics()["gpuledger_policy_leader"] == 0
        assert site.gpuledger("policy", "status", "--max-age", str(HOUR)).returncode == 3
    assert not any(site.says(n, "Traceback") for n in (0, 1))
