"""How many samples a worker counts from Apache Kafka per second of its processor, alone and beside a second one."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from infra.kafka.nodes import Broker
from tests.bench.test_telemetry_buckets import GPUS, SAMPLES_PER_CPU_S, measured
from tests.chaos.publishing import Published, forget_topics, publish_all
from tests.chaos.test_killed_workers import database_beside
from tests.chaos.workers import Watch, shares, wait_for
from tests.commands.fixtures import Ledger

from gpuledger.streams.protocol import Message
from gpuledger.streams.topics import PLANS, TELEMETRY

pytestmark = [pytest.mark.bench, pytest.mark.durable_broker, pytest.mark.timeout(3600)]

MINUTES = {"short": 60, "full": 480}

ADDITIVE_MIN = 1.3
"""Two workers against one, in samples per second of the processor time of each; 2 where each has a core to itself."""


BUCKETS = (
    "SELECT book, bucket_at, gpu, workload, run, rung, sampled_gpu_ms, used_gpu_upms FROM telemetry.buckets"
    " ORDER BY 1, 2, 3, 4, 5, 6"
)


class Share(NamedTuple):
    """What one worker did."""

    messages: int
    cpu_s: float
    all: int

    @property
    def rate(self) -> float:
        """GPU samples per second of this worker's processor time."""
        return self.messages * GPUS / self.cpu_s


@pytest.fixture
def ledger(database_url: str, tmp_path: Path) -> Ledger:
    return Ledger({"GPULEDGER_HOME": str(tmp_path), "GPULEDGER_DATABASE_URL": database_url}, database_url)


def counted(
    ledger: Ledger, bootstrap: str, repository: Path, messages: Sequence[Published], *, workers: int
) -> list[Share]:
    """Publish messages to so many workers that share the topic, and end them when all are booked."""
    forget_topics(bootstrap)
    command = [sys.executable, "-m", "tests.bench.sharing", ledger.url, bootstrap]
    processes = [
        subprocess.Popen(command, cwd=repository, stdout=subprocess.PIPE, text=True) for _ in range(workers)
    ]
    watch = Watch(ledger, TELEMETRY)
    try:
        fair = [PLANS[TELEMETRY].partitions // workers] * workers
        assert wait_for(lambda: [len(s) for s in shares(ledger, bootstrap, TELEMETRY)] == fair, processes[0])
        publish_all(bootstrap, messages)
        assert wait_for(lambda: watch.position == len(messages), processes[0], within_s=1800)
        time.sleep(1)  # the last batch was committed, and is now told to whoever measures
        for process in processes:
            process.send_signal(signal.SIGTERM)
        return [Share(**json.loads(process.communicate(timeout=60)[0])) for process in processes]
    finally:
        for process in processes:
            process.kill()


def test_two_workers_count_twice_as_much_as_one(
    apache_kafka: Broker, ledger: Ledger, test_form: str, repository: Path
) -> None:
    """By the processor time of each worker, since they share two cores with the broker and the database here."""
    messages = [(TELEMETRY, Message(host, value)) for host, value in measured(MINUTES[test_form])]
    beside = database_beside(ledger)
    assert beside.fresh("db", "upgrade").status == 0
    (alone,) = counted(ledger, apache_kafka.bootstrap, repository, messages, workers=1)
    both = counted(beside, apache_kafka.bootstrap, repository, messages, workers=2)
    together = sum(share.rate for share in both)
    rates, parts = (
        [f"{share.rate:,.0f}" for share in both],
        [f"{share.all / len(messages):.0%}" for share in both],
    )
    print(
        f"\n{len(messages) * GPUS:,} GPU samples from Kafka, per second of a worker's processor: one alone"
        f" {alone.rate:,.0f} (target {SAMPLES_PER_CPU_S:,}); two {' and '.join(rates)}, which counted"
        f" {' and '.join(parts)}: {together / alone.rate:.2f} times"
        f" as much, at least {ADDITIVE_MIN} wanted"
    )
    assert sum(share.all for share in both) == len(messages)
    assert ledger.rows(BUCKETS) == beside.rows(BUCKETS)
    assert together / alone.rate >= ADDITIVE_MIN
