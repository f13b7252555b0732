"""Importing: straight or through a broker, the same events, and counts of records rather than events."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from gpuledger.database.engine import reading
from gpuledger.events.budget import Granted
from gpuledger.events.envelope import make
from gpuledger.events.telemetry import Sampled
from gpuledger.events.workload import Ended
from gpuledger.ingest import dead_letters, importer
from gpuledger.ingest.importer import (
    EVENT_TOPICS,
    BrokerSink,
    ImportReport,
    LedgerSink,
    run_import,
    topic_of,
)
from gpuledger.ingest.intake import Intake
from gpuledger.ingest.worker import Worker
from gpuledger.ledger.rebuild import state_digest
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.registry import source
from gpuledger.streams.files import FileBroker
from gpuledger.streams.topics import BUDGET_EVENTS, SCHEDULER_EVENTS, TELEMETRY

HEADER = "timestamp,duration,num_gpus,gpu_time,cluster\n"
ROWS = [f"2017-10-01 00:00:0{n},3600.0,{n + 1},{3600 * (n + 1)}.0,vc{n % 2}\n" for n in range(5)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(HEADER + "".join(ROWS))
    return path


def import_into(intake: Intake, path: Path) -> ImportReport:
    return run_import(source("philly"), path, ImportOptions(), LedgerSink(intake), lambda _: None)[0]


def digest(engine: sa.Engine) -> str:
    with reading(engine) as reader:
        return state_digest(reader)


def test_records_are_counted_not_their_events(intake: Intake, path: Path) -> None:
    first = import_into(intake, path)
    assert (first.records, first.accepted, first.repeated) == (5, 5, 0)
    path.write_text(HEADER + "".join(ROWS) + "2017-10-02 00:00:00,60.0,1,60.0,vc0\n")
    second = import_into(intake, path)
    assert (second.records, second.accepted, second.repeated) == (6, 1, 5)


def test_the_clusters_and_the_progress_are_told(
    intake: Intake, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importer, "BATCH_RECORDS", 2)
    seen: list[int] = []
    _, clusters = run_import(
        source("philly"), path, ImportOptions(cluster="mine"), LedgerSink(intake), seen.append
    )
    assert clusters == ["mine"]
    assert len(seen) == 3
    assert seen[-1] == path.stat().st_size


def test_an_empty_table_is_no_record(intake: Intake, path: Path) -> None:
    path.write_text(HEADER)
    assert import_into(intake, path) == ImportReport()


def test_through_a_broker_the_same_is_booked(
    engine: sa.Engine, intake: Intake, broker: FileBroker, path: Path
) -> None:
    sink = BrokerSink(intake, broker)
    report, _ = run_import(source("philly"), path, ImportOptions(), sink, lambda _: None)
    sink.publisher.close()
    assert (report.records, report.accepted, report.repeated) == (5, 5, 0)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM ledger.journal").scalar() == 0
    for topic in (SCHEDULER_EVENTS, TELEMETRY):
        Worker(intake, broker, topic).run(lambda _: None, once=True)
    through_the_broker = digest(engine)

    direct = import_into(intake, path)

    assert (direct.accepted, direct.repeated) == (0, 5)
    assert digest(engine) == through_the_broker


def test_each_event_goes_on_the_topic_of_its_kind() -> None:
    grant = Granted(account="org/a", cluster="c", period="2026-12", gpu_ms=1, reason="r", by="b")
    sample = Sampled(cluster="c", host="h", interval_s=60, gpus=[])
    over = Ended(cluster="c", workload="w", reason="done")
    facts = {BUDGET_EVENTS: grant, TELEMETRY: sample, SCHEDULER_EVENTS: over}
    found = {topic: topic_of(make(id="1", source="s", at_s=1, data=fact)[0]) for topic, fact in facts.items()}
    assert found == {topic: topic for topic in EVENT_TOPICS}


def test_a_broker_is_told_beforehand_what_the_ledger_knows(
    intake: Intake, broker: FileBroker, path: Path
) -> None:
    import_into(intake, path)
    sink = BrokerSink(intake, broker)
    report, _ = run_import(source("philly"), path, ImportOptions(), sink, lambda _: None)
    assert (report.accepted, report.repeated) == (0, 5)


def test_faults_are_kept_with_what_a_retry_needs(intake: Intake, path: Path) -> None:
    path.write_text(HEADER + ROWS[0] + "bad\n" + ROWS[1])
    report = import_into(intake, path)
    assert (report.records, report.accepted, report.dead_lettered) == (3, 2, 1)
    assert len(report.faults) == 1
    assert report.faults[0].startswith(f"{path}:3: ")
    (stored,) = waiting(intake)
    letter = stored.letter
    assert (letter.stream, letter.position, letter.place) == ("import/philly/philly", 3, f"{path}:3")
    assert (letter.raw, letter.context["source"]) == (b"bad", "philly")


def test_a_report_has_the_published_keys() -> None:
    assert ImportReport().as_json() == {
        "records": 0,
        "accepted": 0,
        "repeated": 0,
        "dead_lettered": 0,
        "anomalies": [],
        "faults": [],
    }


def waiting(intake: Intake) -> list[dead_letters.Stored]:
    with reading(intake.engine) as reader:
        return dead_letters.waiting(reader)
