"""Workers that share a topic: partitions move when one comes, sleeps or dies; nothing is booked twice or left out."""

import signal
from collections.abc import Iterator
from decimal import Decimal

import pytest
from infra.kafka.nodes import Broker
from tests.chaos.publishing import Published, forget_topics, publish_all
from tests.chaos.test_killed_workers import database_beside
from tests.chaos.workers import Watch, ended, shares, wait_for, worker
from tests.commands.fixtures import Ledger
from tests.commands.running import finish
from tests.integration.ingest.test_worker import job

from gpuledger.events.envelope import encode
from gpuledger.events.telemetry import GpuSample, Sampled
from gpuledger.streams.protocol import Message
from gpuledger.streams.topics import PLANS, SCHEDULER_EVENTS, TELEMETRY

pytestmark = [pytest.mark.durable_broker, pytest.mark.timeout(900)]

CLUSTERS = 24
PARTITIONS = PLANS[SCHEDULER_EVENTS].partitions
HOSTS = 24


@pytest.fixture
def bootstrap(apache_kafka: Broker) -> str:
    """Apache Kafka without any of the product's topics."""
    forget_topics(apache_kafka.bootstrap)
    return apache_kafka.bootstrap


@pytest.fixture
def clean(ledger: Ledger) -> Ledger:
    """Another ledger, for what one worker makes of the same topic in peace."""
    beside = database_beside(ledger)
    assert beside.fresh("db", "upgrade").status == 0
    return beside


def jobs(batch: str) -> Iterator[Published]:
    """Yield three facts of a job on each of many clusters."""
    for number in range(CLUSTERS):
        cluster = f"c{number}"
        for value in job(f"{batch}-{number}", cluster):
            yield SCHEDULER_EVENTS, Message(cluster, value)


def samples(minutes: range) -> Iterator[Published]:
    """Yield what many hosts measured, minute by minute; each bucket is filled by several messages."""
    for minute in minutes:
        for host in (f"h{number}" for number in range(HOSTS)):
            gpus = [
                GpuSample(uuid=f"{host}/{n}", run="w/1", gpu_util=Decimal(minute % 100)) for n in range(4)
            ]
            fact = Sampled(cluster="alpha", host=host, interval_s=60, gpus=gpus)
            value = encode(id=f"{host}/{minute}", source="nvml/alpha", at_s=60 * minute, data=fact)
            yield TELEMETRY, Message(host, value)


def test_partitions_move_and_the_state_is_that_of_one_worker_in_peace(
    ledger: Ledger, clean: Ledger, bootstrap: str
) -> None:
    watch, published = Watch(ledger), 0

    def publish(batch: str) -> None:
        nonlocal published
        published += publish_all(bootstrap, jobs(batch))[SCHEDULER_EVENTS]

    def booked() -> bool:
        return watch.position == published

    publish("first")
    with ended(worker(ledger, bootstrap)) as sleeper, ended(worker(ledger, bootstrap)) as mortal:
        assert wait_for(lambda: [len(held) for held in shares(ledger, bootstrap)] == [4, 4], sleeper)
        assert wait_for(booked, sleeper)

        sleeper.send_signal(signal.SIGSTOP)
        publish("second")
        assert wait_for(booked, mortal), "its partitions go to the other"
        heads = ledger.heads()
        sleeper.send_signal(signal.SIGCONT)
        assert wait_for(lambda: [len(held) for held in shares(ledger, bootstrap)] == [4, 4], sleeper)
        assert ledger.heads() == heads, "what it had fetched before it slept it does not book"

        with ended(worker(ledger, bootstrap)) as third:
            assert wait_for(lambda: sorted(map(len, shares(ledger, bootstrap))) == [2, 3, 3], third)
            publish("third")
            mortal.kill()
            publish("fourth")
            assert wait_for(booked, third), "its partitions go to the others"
            assert sorted(p for held in shares(ledger, bootstrap) for p in held) == list(range(PARTITIONS))
            for process in (sleeper, third):
                process.send_signal(signal.SIGINT)
                ran = finish(process, within_s=60)
                assert (ran.status, "Traceback" in ran.err) == (130, False), ran.err
    assert finish(worker(clean, bootstrap, "--once")).status == 0

    twice = "SELECT 1 FROM ledger.journal GROUP BY book, source, event_id HAVING count(*) > 1"
    assert ledger.rows(twice) == []
    assert len(ledger.heads()) == CLUSTERS + 1
    assert ledger.checked_digest() == clean.checked_digest()


def test_two_workers_count_samples_as_one_does(ledger: Ledger, clean: Ledger, bootstrap: str) -> None:
    publish_all(bootstrap, samples(range(60)))
    watch = Watch(ledger, TELEMETRY)
    options = ("--topic", TELEMETRY)
    with ended(worker(ledger, bootstrap, *options)) as first, ended(worker(ledger, bootstrap, *options)):
        assert wait_for(lambda: [len(held) for held in shares(ledger, bootstrap, TELEMETRY)] == [4, 4], first)
        publish_all(bootstrap, [*samples(range(30, 120))])  # half of them told anew
        assert wait_for(lambda: watch.position == HOSTS * 150, first)
    assert finish(worker(clean, bootstrap, "--once", *options)).status == 0

    buckets = "SELECT book, bucket_at, gpu, workload, run, rung, sampled_gpu_ms, used_gpu_upms FROM telemetry.buckets"
    counted = sorted(ledger.rows(buckets))
    assert counted == sorted(clean.rows(buckets))
    assert sum(row[6] for row in counted) == HOSTS * 4 * 120 * 60 * 1000


def test_a_look_at_a_topic_that_others_read_waits_for_them(ledger: Ledger, bootstrap: str) -> None:
    """So does an import through Kafka: it disturbs nobody."""
    publish_all(bootstrap, jobs("first"))
    watch = Watch(ledger)
    with ended(worker(ledger, bootstrap)) as first:
        assert wait_for(lambda: watch.position > 0, first)
        published = publish_all(bootstrap, jobs("second"))[SCHEDULER_EVENTS]

        ran = finish(worker(ledger, bootstrap, "--once"))

        assert ran.status == 0, ran.err
        assert watch.standing() == (1, 2 * published)
        assert first.poll() is None
