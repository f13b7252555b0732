"""What waits in a stream stands in the ledger, where metrics read it."""

import msgspec
import pytest
import sqlalchemy as sa
from tests.integration.ingest.test_worker import job, put, run

from gpuledger.database.engine import reading, writing
from gpuledger.ingest.intake import Intake
from gpuledger.ingest.offsets import claim
from gpuledger.ingest.worker import Worker
from gpuledger.ledger import queries
from gpuledger.streams.files import FileBroker, FileSubscriber
from gpuledger.streams.protocol import PositionLost
from gpuledger.streams.topics import DEAD_LETTERS, SCHEDULER_EVENTS


def test_what_waits_is_kept_where_metrics_read_it(
    engine: sa.Engine, intake: Intake, broker: FileBroker
) -> None:
    put(broker, [*job("a"), *job("b")])
    run(intake, broker)
    with reading(engine) as reader:
        (status,) = queries.streams(reader)
    found = (status.consumer, status.stream, status.position, status.waiting)
    assert found == ("ledger", SCHEDULER_EVENTS, 6, 0)
    assert status.seen_at is not None
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE ledger.stream_offsets SET position = 2")
    with reading(engine) as reader:
        assert queries.streams(reader)[0].waiting == 4


def test_before_a_worker_looked_nobody_knows_what_waits(engine: sa.Engine) -> None:
    with writing(engine) as writer:
        claim(writer, "ledger", SCHEDULER_EVENTS, [0])
    with reading(engine) as reader:
        (status,) = queries.streams(reader)
    assert (status.waiting, status.seen_at) == (None, None)


def test_each_worker_that_claims_a_partition_is_counted(
    engine: sa.Engine, intake: Intake, broker: FileBroker
) -> None:
    put(broker, job("a"))
    run(intake, broker)
    run(intake, broker)
    with reading(engine) as reader:
        assert [status.takeovers for status in queries.streams(reader)] == [2]


def test_the_topic_of_dead_letters_is_told_of_those_that_were_kept(
    engine: sa.Engine, intake: Intake, broker: FileBroker
) -> None:
    put(broker, [b"nonsense", *job("a"), b"{}"])
    run(intake, broker)
    notes = [msgspec.json.decode(line) for line in broker.path(DEAD_LETTERS, 0).read_bytes().splitlines()]
    assert [(note["stream"], note["partition"], note["position"]) for note in notes] == [
        (SCHEDULER_EVENTS, 0, 0), (SCHEDULER_EVENTS, 0, 4),
    ]  # fmt: skip
    assert {note["code"] for note in notes} == {"not-an-event"}


def test_a_topic_that_was_created_anew_is_read_from_its_beginning_when_that_is_said(
    engine: sa.Engine, intake: Intake, broker: FileBroker
) -> None:
    put(broker, [*job("a"), *job("b")])
    run(intake, broker)
    path = broker.path(SCHEDULER_EVENTS, 0)
    path.write_bytes(b"".join(line + b"\n" for line in [*job("b"), *job("c")][:5]))
    with pytest.raises(PositionLost, match="5 complete lines, the reader was at 6") as lost:
        run(intake, broker)
    assert "--from-start" in lost.value.hint

    done = Worker(intake, broker, SCHEDULER_EVENTS).run(lambda _: None, once=True, from_start=True)

    assert (done.records, done.accepted, done.repeated, done.gone) == (5, 2, 3, 0)
    with reading(engine) as reader:
        assert [status.position for status in queries.streams(reader)] == [5]


def test_what_nobody_had_read_and_is_gone_is_counted(
    intake: Intake, broker: FileBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a broker that deleted the oldest two of five records before a worker came."""
    put(broker, job("a"))
    monkeypatch.setattr(FileSubscriber, "first_positions", lambda *_: {0: 2})
    done = Worker(intake, broker, SCHEDULER_EVENTS).run(lambda _: None, once=True, from_start=True)
    assert (done.records, done.gone) == (1, 2)
