"""How fast events come from Apache Kafka into the books, against a bare poll loop that only decodes them."""

import time
from itertools import islice

import pytest
import sqlalchemy as sa
from infra.kafka.nodes import Broker
from kafka import KafkaConsumer, TopicPartition
from tests.bench.load import batches
from tests.chaos.publishing import Published, forget_topics, publish_all

from gpuledger.database.engine import make_engine
from gpuledger.events.envelope import decode, encode, key_of
from gpuledger.ingest.collector import relax_collector
from gpuledger.ingest.intake import Intake
from gpuledger.ingest.worker import Worker
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock
from gpuledger.streams.kafka import KafkaBroker
from gpuledger.streams.protocol import Message
from gpuledger.streams.topics import SCHEDULER_EVENTS

pytestmark = [pytest.mark.bench, pytest.mark.durable_broker, pytest.mark.timeout(3600)]

EVENTS = {"short": 60_000, "full": 300_000}


def published(events: int) -> list[Published]:
    """Return events of runs as messages of the scheduler's topic."""
    told = (event for batch in batches(1000) for event in batch)
    return [
        (
            SCHEDULER_EVENTS,
            Message(key_of(e.data), encode(id=e.id, source=e.source, at_s=e.at_s, data=e.data)),
        )
        for e in islice(told, events)
    ]


def bare_poll(bootstrap: str, events: int) -> float:
    """Read and decode them with the client alone; return how long it took."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False)
    place = TopicPartition(SCHEDULER_EVENTS, 0)
    consumer.assign([place])
    consumer.seek(place, 0)
    began, seen = time.perf_counter(), 0
    while seen < events:
        for record in consumer.poll(timeout_ms=1000, max_records=3000).get(place, ()):
            decode(record.value)
            seen += 1
    took = time.perf_counter() - began
    consumer.close()
    return took


def ingest(bootstrap: str, engine: sa.Engine, events: int) -> float:
    """Book them through the worker; return how long it took."""
    worker = Worker(Intake(engine, SystemClock(), Calendar()), KafkaBroker(bootstrap), SCHEDULER_EVENTS)
    began = time.perf_counter()
    done = worker.run(lambda _: None, once=True)
    took = time.perf_counter() - began
    assert done.accepted == events
    return took


def test_ingest_from_kafka_against_a_bare_poll_that_only_decodes(
    apache_kafka: Broker, database_url: str, test_form: str
) -> None:
    relax_collector()
    events = EVENTS[test_form]
    forget_topics(apache_kafka.bootstrap)
    publish_all(apache_kafka.bootstrap, published(events))
    engine = make_engine(database_url)
    bare = bare_poll(apache_kafka.bootstrap, events)
    took = ingest(apache_kafka.bootstrap, engine, events)
    engine.dispose()
    print(
        f"\ningest {events / took:,.0f} events/s; bare poll with decoding {events / bare:,.0f} events/s;"
        f" ratio {bare / took:.3f}"
    )
