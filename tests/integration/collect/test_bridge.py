"""Documents of a foreign topic are booked once each, and what is none is a dead letter with its place."""

import json
from collections.abc import Mapping, Sequence
from typing import cast

import pytest
import sqlalchemy as sa
from tests.accounting import CLUSTER

from gpuledger.collect.bridge import CONSUMER, Documents
from gpuledger.ingest.intake import Intake
from gpuledger.ingest.worker import Progress, Worker
from gpuledger.kernel.errors import NotFound
from gpuledger.sources.registry import source
from gpuledger.streams.files import FileBroker, FileSubscriber
from gpuledger.streams.protocol import Message
from gpuledger.streams.topics import Topic

TOPIC = cast("Topic", "slurm.jobcomp")


def finished(number: int, submit: str, start: str, end: str, **other: object) -> bytes:
    """Return a document of a job that has ended (synthetic, but for its keys)."""
    return json.dumps(
        {
            "jobid": number, "cluster": CLUSTER, "username": "ada", "account": "vision", "state": "COMPLETED",
            "@submit": submit, "@eligible": submit, "@start": start, "@end": end, "elapsed": 0, "partition": "gpu",
            "qos": "normal", "nodes": "node1", "time_limit": 600, "exit_code": "0:0",
            "tres_alloc": "cpu=2,node=1,billing=2,gres/gpu=2,gres/gpu:h100=2", "tres_req": "cpu=2,gres/gpu=2",
            **other,
        }
    ).encode()  # fmt: skip


ONE = finished(1, "2026-11-29T10:00:00", "2026-11-29T10:00:00", "2026-11-29T10:05:00", elapsed=300)
TWO = finished(2, "2026-11-29T11:00:00", "2026-11-29T11:00:00", "2026-11-29T11:01:40", elapsed=100)


def put(broker: FileBroker, *values: bytes) -> None:
    broker.ensure_topics([TOPIC])
    publisher = broker.publisher()
    publisher.publish(TOPIC, [Message("", value) for value in values])
    publisher.close()


def read(intake: Intake, broker: FileBroker, cluster: str | None = None) -> Progress:
    documents = Documents(intake.engine, source("slurm-jobcomp"), cluster)
    return Worker(intake, broker, TOPIC, consumer=CONSUMER, understand=documents).run(
        lambda _: None, once=True
    )


def rows(engine: sa.Engine, sql: str) -> list[tuple[object, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(sa.text(sql))]


HELD = (
    "SELECT book, account, gpus_milli * extract(epoch FROM to_at - from_at)::int FROM ledger.segments"
    " WHERE until_seq IS NULL ORDER BY from_at"
)


def test_documents_are_booked_once_however_often_the_bridge_starts(
    intake: Intake, broker: FileBroker
) -> None:
    put(broker, ONE, TWO)
    assert read(intake, broker).records == 2
    head = rows(intake.engine, "SELECT book, last_seq FROM ledger.books ORDER BY book")

    assert read(intake, broker).records == 0

    assert rows(intake.engine, HELD) == [
        ("alpha", "alpha/vision", 600_000),
        ("alpha", "alpha/vision", 200_000),
    ]
    assert rows(intake.engine, "SELECT book, last_seq FROM ledger.books ORDER BY book") == head
    assert rows(intake.engine, "SELECT consumer, stream, position FROM ledger.stream_offsets") == [
        ("jobcomp", "slurm.jobcomp", 2)
    ]


def test_the_same_document_twice_changes_nothing(intake: Intake, broker: FileBroker) -> None:
    put(broker, ONE, ONE)

    done = read(intake, broker)

    assert (done.records, done.accepted, done.repeated) == (2, 3, 3)
    assert rows(intake.engine, HELD) == [("alpha", "alpha/vision", 600_000)]


def test_what_is_no_document_is_a_dead_letter_with_its_place_and_the_others_are_booked(
    intake: Intake, broker: FileBroker
) -> None:
    put(broker, b"hello", ONE, b"", b'{"jobid": "x"}', TWO.replace(b"COMPLETED", b"FROZEN"))

    assert read(intake, broker).dead_lettered == 3

    assert rows(intake.engine, HELD) == [("alpha", "alpha/vision", 600_000)]
    letters = rows(
        intake.engine, "SELECT position, place, code, raw, reason FROM ledger.dead_letters ORDER BY position"
    )
    assert [letter[:3] for letter in letters] == [
        (0, "slurm.jobcomp[0]:0", "bad-shape"),
        (3, "slurm.jobcomp[0]:3", "bad-shape"),
        (4, "slurm.jobcomp[0]:4", "unknown-state"),
    ]
    assert bytes(letters[1][3]) == b'{"jobid": "x"}'  # type: ignore[call-overload]
    assert str(letters[2][4]).startswith("slurm.jobcomp[0]:4: ")


def test_a_requeued_jobs_documents_are_one_workload_in_whatever_order(
    intake: Intake, broker: FileBroker
) -> None:
    again = finished(1, "2026-11-29T10:05:00", "2026-11-29T10:06:00", "2026-11-29T10:08:00", elapsed=120)
    requeued = ONE.replace(b"COMPLETED", b"PENDING")
    put(broker, requeued, again)

    read(intake, broker)

    assert rows(
        intake.engine, "SELECT count(DISTINCT workload) FROM ledger.segments WHERE until_seq IS NULL"
    ) == [(1,)]
    assert sum(int(str(gpu_ms)) for *_, gpu_ms in rows(intake.engine, HELD)) == 600_000 + 240_000


def test_the_cluster_may_be_named_otherwise(intake: Intake, broker: FileBroker) -> None:
    put(broker, ONE)

    read(intake, broker, "beta")

    assert rows(intake.engine, HELD) == [("beta", "beta/vision", 600_000)]


def test_a_foreign_topic_is_never_made(intake: Intake, broker: FileBroker) -> None:
    with pytest.raises(NotFound, match=r"slurm\.jobcomp"):
        read(intake, broker)


def test_what_expired_before_anything_was_read_is_passed_over(
    intake: Intake, broker: FileBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(self: FileSubscriber, partitions: Sequence[int]) -> Mapping[int, int]:
        return dict.fromkeys(partitions, 1)

    put(broker, ONE, TWO)
    monkeypatch.setattr(FileSubscriber, "first_positions", begin)

    read(intake, broker)

    assert rows(intake.engine, HELD) == [("alpha", "alpha/vision", 200_000)]
