"""Law 7 from end to end: a record of each bad kind is kept and told, the stream goes on, and a mended one is booked."""

import json
from pathlib import Path

import msgspec
import pytest
from tests.commands.fixtures import Ledger
from tests.integration.ingest.test_worker import HOUR_S, job

from gpuledger.events import envelope
from gpuledger.events.acceptance import EVENT_BYTES_MAX
from gpuledger.events.workload import Started
from gpuledger.ingest.dead_letters import iter_entries
from gpuledger.ingest.intake import Intake
from gpuledger.ingest.retrying import retry
from gpuledger.ingest.worker import Worker
from gpuledger.kernel.reasons import REASONS
from gpuledger.streams.files import FileBroker
from gpuledger.streams.protocol import Message
from gpuledger.streams.topics import DEAD_LETTERS, SCHEDULER_EVENTS

GOOD = job("good")
VICTIM = job("victim")[1]
"""The start of a run; each kind of poison is what a sender could have made of it."""


def _changed(**data: object) -> bytes:
    event = json.loads(VICTIM)
    event["data"] |= data
    return json.dumps(event).encode()


def _renamed(name: str) -> bytes:
    return json.dumps(json.loads(VICTIM) | {"type": f"org.gpuledger.{name}.v1"}).encode()


POISON = {
    "bad JSON": (VICTIM[:-7], "not-an-event"),
    "no JSON at all": (b"\x00\xff\xfe", "not-an-event"),
    "NUL": (_changed(run="1\0"), "null-character"),
    "huge number": (_changed(gpus_milli=10**30), "bad-field"),
    "more GPUs than there are": (_changed(gpus_milli=2**53), "out-of-bounds"),
    "huge event": (_changed(comment="x" * EVENT_BYTES_MAX), "event-too-large"),
    "wrong type of a field": (_changed(gpus_milli="eight"), "bad-field"),
    "wrong type of event": (_renamed("workload.eaten"), "unknown-type"),
    "own type": (_renamed("decision.made"), "bad-field"),
    "own type, well made": (
        (Path(__file__).parents[2] / "contract/events/corpus/ledger.ticked.v1.ndjson")
        .read_bytes()
        .splitlines()[0],
        "own-type",
    ),
}


def publish(home: Path, values: list[bytes]) -> None:
    broker = FileBroker(home / "streams")
    broker.ensure_topics([SCHEDULER_EVENTS])
    publisher = broker.publisher()
    publisher.publish(SCHEDULER_EVENTS, [Message("alpha", value) for value in values])
    publisher.close()


@pytest.mark.parametrize("kind", POISON)
def test_poison_is_kept_told_shown_and_booked_once_it_is_mended(
    ledger: Ledger, tmp_path: Path, kind: str
) -> None:
    poison, code = POISON[kind]
    publish(ledger.home, [GOOD[0], poison, *GOOD[1:], job("victim")[0], job("victim")[2]])

    ran = ledger("ingest", "--once", "--no-tick")

    assert ran.status == 0, ran.err
    assert "5 accepted, 0 repeated, 1 dead-lettered" in ran.err, "the stream went on"
    (letter,) = ledger.done("dlq", "list")["dead_letters"]
    assert (letter["stream"], letter["partition"], letter["position"]) == (SCHEDULER_EVENTS, 0, 1)
    assert (letter["code"], letter["bytes"]) == (code, len(poison))
    (line,) = (ledger.home / "streams" / DEAD_LETTERS / "0.ndjson").read_bytes().splitlines()
    note = msgspec.json.decode(line)
    assert {key: letter[key] for key in note} == note, "the topic says what the table says"
    shown = ledger("dlq", "show", letter["id"]).out
    for said in ("gpu.scheduler.events[0]@1", letter["reason"], REASONS[code]):
        assert said in shown
    assert ledger("dlq", "retry", "--json").json == {"resolved": 0, "failed": 1}

    mended = tmp_path / "mended.json"
    mended.write_bytes(VICTIM)
    assert ledger.done("dlq", "retry", letter["id"], "--mended", mended) == {"resolved": 1, "failed": 0}

    assert ledger.hours("account") == {"org/vision": "2.000"}
    heads = ledger.heads()
    assert ledger.done("dlq", "retry") == {"resolved": 0, "failed": 0}
    assert ledger.heads() == heads


def test_what_a_newer_version_understands_is_booked_by_a_retry_as_if_it_had_come_in_order(
    intake: Intake, broker: FileBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older version knows no starts."""
    broker.ensure_topics([SCHEDULER_EVENTS])
    publisher = broker.publisher()
    publisher.publish(SCHEDULER_EVENTS, [Message("alpha", value) for value in [*GOOD, *job("victim")]])
    publisher.close()
    with monkeypatch.context() as patch:
        _forget(patch, Started)
        envelope._named.cache_clear()  # another version is another process
        done = Worker(intake, broker, SCHEDULER_EVENTS).run(lambda _: None, once=True)
    assert (done.accepted, done.dead_lettered) == (4, 2)
    assert {entry.code for entry in iter_entries(intake.engine)} == {"unknown-type"}

    assert retry(intake, iter_entries(intake.engine), _never).resolved == 2

    with intake.engine.connect() as connection:
        charged = connection.exec_driver_sql(
            "SELECT sum(amount) FROM ledger.postings WHERE code = 'charge' AND commodity = 'gpu_ms'"
        ).scalar_one()
    assert charged == 2 * HOUR_S * 1000
    assert list(iter_entries(intake.engine)) == []


def _forget(patch: pytest.MonkeyPatch, fact: type) -> None:
    known = envelope.fact_type

    def forgetful(name: str) -> object:
        return None if known(name) is fact else known(name)

    patch.setattr(envelope, "fact_type", forgetful)


def _never(*_: object) -> None:
    raise AssertionError("all of it is understood now")
