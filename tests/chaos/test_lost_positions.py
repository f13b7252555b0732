"""A stored position that the stream no longer holds stops the worker; it never starts over in silence."""

import pytest
from infra.kafka.nodes import Broker
from tests.chaos.publishing import forget_topics, publish, publish_raw
from tests.chaos.workers import Watch, worker
from tests.commands.fixtures import Ledger
from tests.commands.running import finish
from tests.commands.traces import ALEX

pytestmark = pytest.mark.durable_broker


@pytest.fixture
def bootstrap(apache_kafka: Broker) -> str:
    """Apache Kafka without any of the product's topics."""
    forget_topics(apache_kafka.bootstrap)
    return apache_kafka.bootstrap


@pytest.fixture
def booked(ledger: Ledger, bootstrap: str) -> int:
    """How many events were on the topic, all of them booked."""
    count = publish(bootstrap, [("clustercockpit", ALEX)])["gpu.scheduler.events"]
    ran = finish(worker(ledger, bootstrap, "--once"))
    assert ran.status == 0, ran.err
    return count


def test_a_position_beyond_the_end(ledger: Ledger, bootstrap: str, booked: int) -> None:
    ledger.change("UPDATE ledger.stream_offsets SET position = position + 1000")
    heads = ledger.heads()

    ran = finish(worker(ledger, bootstrap, "--once"), within_s=120)

    assert ran.status == 1
    assert f"holds 0 up to {booked}, the reader was at {booked + 1000}" in ran.err
    assert "hint: " in ran.err
    assert "Traceback" not in ran.err
    assert Watch(ledger).position == booked + 1000
    assert ledger.heads() == heads


def test_a_topic_that_was_created_anew(ledger: Ledger, bootstrap: str, booked: int) -> None:
    heads = ledger.heads()
    forget_topics(bootstrap)
    publish_raw(bootstrap, [b"{}"])

    ran = finish(worker(ledger, bootstrap), within_s=120)

    assert ran.status == 1
    assert "created anew" in ran.err
    assert "gpuledger ingest --from-start" in ran.err
    assert Watch(ledger).position == booked
    assert ledger.heads() == heads

    mended = finish(worker(ledger, bootstrap, "--once", "--from-start"))

    assert mended.status == 0, mended.err
    assert "0 accepted, 0 repeated, 1 dead-lettered" in mended.err
    assert Watch(ledger).position == 1
    assert ledger.heads() == heads


def test_a_topic_that_was_created_anew_and_has_grown_past_the_position(
    ledger: Ledger, bootstrap: str, booked: int
) -> None:
    """The position alone is there; what the new topic holds before it would never be read."""
    heads = ledger.heads()
    ledger.change("UPDATE ledger.stream_offsets SET published_at = published_at - interval '1 day'")
    forget_topics(bootstrap)
    publish_raw(bootstrap, [b"{}"] * (booked + 1))

    ran = finish(worker(ledger, bootstrap, "--once"), within_s=120)

    assert ran.status == 1
    assert "is another than was read" in ran.err
    assert "gpuledger ingest --from-start" in ran.err
    assert Watch(ledger).position == booked
    assert ledger.heads() == heads


def test_a_topic_that_is_read_again_from_its_beginning_books_nothing_twice(
    ledger: Ledger, bootstrap: str, booked: int
) -> None:
    heads = ledger.heads()

    ran = finish(worker(ledger, bootstrap, "--once", "--from-start"))

    assert f"0 accepted, {booked} repeated, 0 dead-lettered" in ran.err
    assert Watch(ledger).position == booked
    assert ledger.heads() == heads
