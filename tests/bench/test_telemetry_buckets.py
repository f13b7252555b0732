"""How fast one worker counts samples into buckets, against a bare read and COPY of the same; alone and with another."""

import time
from collections.abc import Iterator
from decimal import Decimal

import msgspec
import psycopg
import pytest
import sqlalchemy as sa

from gpuledger.database.engine import make_engine
from gpuledger.events.envelope import encode
from gpuledger.events.telemetry import GpuSample, Sampled
from gpuledger.ingest.collector import relax_collector
from gpuledger.ingest.intake import Intake
from gpuledger.ingest.worker import read
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock
from gpuledger.streams.protocol import Record
from gpuledger.streams.topics import TELEMETRY

pytestmark = pytest.mark.bench

HOSTS, GPUS, INTERVAL_S = 128, 8, 60
MINUTES = {"short": 60, "full": 480}
BATCH = 1000
SAMPLES_PER_CPU_S = 20_000
"""The design's target, in seconds of this process; printed, and gated on a ratio of the same run."""

RATIO_MIN = 0.12
"""Of what reading the same bytes as plain JSON and COPY of their identities take, in seconds of processor.

Each message is read as an envelope, then as a typed fact whose numbers are checked, then once more for keys that
nobody knows; that is four fifths of the work, and what makes a sentinel a dead letter and not an average.
"""


@pytest.fixture(scope="module")
def messages(test_form: str) -> list[bytes]:
    """What 128 hosts with 8 GPUs each publish, a message a minute."""
    return [value for _, value in measured(MINUTES[test_form])]


def measured(minutes: int) -> Iterator[tuple[str, bytes]]:
    """Yield what 128 hosts with 8 GPUs each publish, a message a minute, with the host that it is of."""
    for minute in range(minutes):
        for host in range(HOSTS):
            gpus = [
                GpuSample(
                    uuid=f"GPU-{host:04}-{gpu}-52b5-4e1b-8f0e",
                    handle=f"job/{host * 7 + gpu % 2}",
                    gpu_util=Decimal(f"{(minute * 7 + gpu) % 100}.{host % 100:02}"),
                    memory_mib=Decimal("71234.25"),
                    power_w=Decimal("655.12"),
                    energy_mj=Decimal(39_307_200),
                )
                for gpu in range(GPUS)
            ]
            fact = Sampled(cluster="alpha", host=f"node-{host:03}", interval_s=INTERVAL_S, gpus=gpus)
            at_s = 1_796_083_200 + minute * INTERVAL_S
            value = encode(id=f"node-{host:03}/{at_s}", source="nvml/alpha", at_s=at_s, data=fact)
            yield f"node-{host:03}", value


def records(messages: list[bytes]) -> list[Record]:
    return [Record(TELEMETRY, 0, position, value) for position, value in enumerate(messages)]


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    engine = make_engine(database_url)
    yield engine
    engine.dispose()


def counted(intake: Intake, messages: list[bytes]) -> tuple[float, float]:
    """Book messages as the worker does; return seconds of the clock for all, of this process for the best batch."""
    began, cpus = time.perf_counter(), []
    for start in range(0, len(messages), BATCH):
        batch = records(messages[start : start + BATCH])
        cpu = time.process_time()
        events, letters = read(batch)
        accepted = intake.take(events).accepted
        cpus.append((time.process_time() - cpu) / len(batch))
        assert not letters
        assert len(accepted) == len(batch)
    return time.perf_counter() - began, min(cpus) * len(messages)


def bare(url: str, messages: list[bytes]) -> tuple[float, float]:
    """A poll that only decodes, numbers exactly, and COPY of as many identities; measured as ``counted``."""
    decoder = msgspec.json.Decoder(float_hook=Decimal)
    began, cpus = time.perf_counter(), []
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        connection.execute("CREATE TEMPORARY TABLE bare (LIKE telemetry.samples INCLUDING ALL)")
        for start in range(0, len(messages), BATCH):
            batch = messages[start : start + BATCH]
            cpu = time.process_time()
            decoded = [decoder.decode(value) for value in batch]
            with connection.cursor().copy("COPY bare FROM STDIN") as copy:
                for event in decoded:
                    copy.write_row(("alpha", event["source"], event["id"]))
            cpus.append((time.process_time() - cpu) / len(batch))
    return time.perf_counter() - began, min(cpus) * len(messages)


def test_a_worker_counts_twenty_thousand_gpu_samples_a_second(
    engine: sa.Engine, database_url: str, messages: list[bytes]
) -> None:
    """The gate is on processor time of this process: the database works beside it, and whoever else is there."""
    relax_collector()
    intake = Intake(engine, SystemClock(), Calendar())
    took, cpu = counted(intake, messages)
    bare_took, bare_cpu = bare(database_url, messages)
    samples = len(messages) * GPUS
    print(
        f"\n{samples:,} GPU samples: {samples / took:,.0f}/s, {samples / cpu:,.0f} per second of the worker's"
        f" processor (target {SAMPLES_PER_CPU_S:,}); bare read and COPY {samples / bare_took:,.0f}/s,"
        f" {samples / bare_cpu:,.0f} per second of processor; ratio {bare_cpu / cpu:.2f}, at least {RATIO_MIN} wanted"
    )
    assert bare_cpu / cpu >= RATIO_MIN
