"""Events from a file are booked like those from a stream: work, budgets and samples, once however often they come."""

from decimal import Decimal
from pathlib import Path

import sqlalchemy as sa

from gpuledger.database.engine import reading
from gpuledger.events.budget import Granted
from gpuledger.events.envelope import make
from gpuledger.events.telemetry import GpuSample, Sampled
from gpuledger.events.workload import Ended, Started, Submitted
from gpuledger.ingest.importer import EVENT_TOPICS, BrokerSink, LedgerSink, run_import
from gpuledger.ingest.intake import Intake
from gpuledger.ingest.worker import Worker
from gpuledger.ledger.balances import BalanceQuery, balance
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.registry import source
from gpuledger.streams.files import FileBroker

SAMPLE = GpuSample(uuid="GPU-1", run="w1/1", gpu_util=Decimal(50))
JOB = {"cluster": "alpha", "workload": "w1"}
START_S = 1_793_491_200  # 2026-11-01T00:00:00Z


def story() -> bytes:
    facts = [
        (0, Granted(account="org/a", cluster="alpha", period="2026-11", gpu_ms=10**9, reason="r", by="ada")),
        (0, Submitted(**JOB, account="org/a", user="ada", gpus_milli=8000)),
        (60, Started(**JOB, run="1", attempt=1, gpus_milli=8000, hosts=["h1"])),
        (60, Sampled(cluster="alpha", host="h1", interval_s=60, gpus=[SAMPLE])),
        (3660, Ended(**JOB, run="1", reason="completed")),
    ]
    lines = [
        make(id=f"{number}", source="test", at_s=START_S + after_s, data=fact)[1]
        for number, (after_s, fact) in enumerate(facts)
    ]
    return b"\n".join([*lines, b"nonsense", b""])


def check(engine: sa.Engine) -> None:
    with reading(engine) as reader:
        found = balance(reader, "org/a", BalanceQuery(cluster="alpha", period="2026-11"), START_S + 86_400)
        buckets = reader.exec_driver_sql(
            "SELECT sum(sampled_gpu_ms), sum(used_gpu_upms) FROM telemetry.buckets"
        )
        assert buckets.one() == (60_000, 60_000 * 500_000)
    assert (found.granted_gpu_ms, found.charged_gpu_ms) == (10**9, 8 * 3600 * 1000)


def test_a_file_of_events_is_booked_and_again_changes_nothing(
    engine: sa.Engine, intake: Intake, tmp_path: Path
) -> None:
    path = tmp_path / "events.ndjson"
    path.write_bytes(story())
    for accepted, repeated in ((5, 0), (0, 5)):
        report, clusters = run_import(
            source("events"), path, ImportOptions(), LedgerSink(intake), lambda _: None
        )
        assert (report.records, report.accepted, report.repeated, report.dead_lettered) == (
            6,
            accepted,
            repeated,
            1,
        )
        assert clusters == ["alpha"]
        intake.open_periods(clusters)
        check(engine)


def test_through_a_broker_the_same_is_booked(
    engine: sa.Engine, intake: Intake, broker: FileBroker, tmp_path: Path
) -> None:
    path = tmp_path / "events.ndjson"
    path.write_bytes(story())
    sink = BrokerSink(intake, broker)
    run_import(source("events"), path, ImportOptions(), sink, lambda _: None)
    sink.publisher.close()
    for topic in EVENT_TOPICS:
        Worker(intake, broker, topic).run(lambda _: None, once=True)
    intake.open_periods(["alpha"])
    check(engine)
