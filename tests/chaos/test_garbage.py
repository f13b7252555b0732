"""Messages that are no events go to the dead letters with their place, and the stream goes on."""

import json

import msgspec
import pytest
from infra.kafka.nodes import Broker
from tests.brokers.reading import read
from tests.chaos.publishing import forget_topics, publish, publish_raw
from tests.chaos.workers import Watch, worker
from tests.commands.fixtures import Ledger
from tests.commands.running import finish
from tests.commands.traces import ALEX

from gpuledger.streams.kafka import KafkaBroker
from gpuledger.streams.topics import DEAD_LETTERS

pytestmark = pytest.mark.durable_broker

ENVELOPE = {
    "specversion": "1.0",
    "id": "w/started",
    "source": "test",
    "type": "org.gpuledger.workload.started.v1",
    "time": "2026-01-01T00:00:00Z",
    "data": {"cluster": "c", "workload": "w", "run": "1", "attempt": 1, "gpus_milli": 1000, "hosts": []},
}
GARBAGE = [
    b"",
    b"\xff\xfe\x00",
    b"null",
    b"[1, 2]",
    b'{"specversion": "1.0"}',
    b"[" * 100_000,
    b'{"specversion": "1.0", "id": 1e999}',
    json.dumps(ENVELOPE | {"type": "org.gpuledger.workload.eaten.v1"}).encode(),
    json.dumps(ENVELOPE | {"type": "com.example.other"}).encode(),
    json.dumps(ENVELOPE | {"time": "yesterday"}).encode(),
    json.dumps(ENVELOPE | {"specversion": "0.3"}).encode(),
    json.dumps(ENVELOPE | {"data": {**ENVELOPE["data"], "gpus_milli": -1}}).encode(),
    json.dumps(ENVELOPE | {"data": {**ENVELOPE["data"], "gpus_milli": 10**30}}).encode(),
    json.dumps(ENVELOPE | {"data": {**ENVELOPE["data"], "workload": "a\x00b"}}).encode(),
    json.dumps(ENVELOPE | {"data": {**ENVELOPE["data"], "cluster": "~org"}}).encode(),
    b"x" * 2**20,
]


def test_garbage_between_events(ledger: Ledger, apache_kafka: Broker) -> None:
    bootstrap = apache_kafka.bootstrap
    forget_topics(bootstrap)
    publish_raw(bootstrap, GARBAGE)
    good = publish(bootstrap, [("clustercockpit", ALEX)])["gpu.scheduler.events"]
    publish_raw(bootstrap, GARBAGE)

    ran = finish(worker(ledger, bootstrap, "--once"))

    assert ran.status == 0, ran.err
    assert f"{good} accepted, 0 repeated, {2 * len(GARBAGE)} dead-lettered" in ran.err
    assert Watch(ledger).position == good + 2 * len(GARBAGE)
    letters = ledger.done("dlq", "list")["dead_letters"]
    offsets = [*range(len(GARBAGE)), *range(len(GARBAGE) + good, 2 * len(GARBAGE) + good)]
    assert [letter["place"] for letter in letters] == [
        f"gpu.scheduler.events[0]@{offset}" for offset in offsets
    ]
    assert all(letter["reason"] and letter["code"] for letter in letters)
    shown = ledger.done("dlq", "show", letters[-1]["id"])
    assert (shown["position"], shown["raw"]) == (offsets[-1], "x" * 2**20)
    notes = read(KafkaBroker(bootstrap), DEAD_LETTERS, len(letters))
    told = [msgspec.json.decode(note.value) for note in notes]
    assert [(note["id"], note["position"], note["code"]) for note in told] == [
        (letter["id"], letter["position"], letter["code"]) for letter in letters
    ]
    assert ledger.hours("cluster", "--cluster", "alex") == {"alex": "3980.037"}

    retried = ledger("dlq", "retry", "--json")
    assert (retried.status, retried.json) == (3, {"resolved": 0, "failed": 2 * len(GARBAGE)})
    ledger.checked_digest()


def test_a_telemetry_sample_with_an_impossible_value(ledger: Ledger, apache_kafka: Broker) -> None:
    forget_topics(apache_kafka.bootstrap)
    sample = ENVELOPE | {
        "type": "org.gpuledger.telemetry.sampled.v1",
        "data": {"cluster": "c", "host": "h", "interval_s": 60, "gpus": [{"uuid": "g", "gpu_util": 101}]},
    }
    publish_raw(apache_kafka.bootstrap, [json.dumps(sample).encode()], "gpu.telemetry")

    ran = finish(worker(ledger, apache_kafka.bootstrap, "--once", "--topic", "gpu.telemetry"))

    assert ran.status == 0, ran.err
    (letter,) = ledger.done("dlq", "list")["dead_letters"]
    assert letter["place"] == "gpu.telemetry[0]@0"
    assert "gpus[g].gpu_util: 101 is not a percentage" in letter["reason"]
