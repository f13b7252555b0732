"""A worker that was paused and wakes up after another took over: it is fenced and writes nothing."""

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from infra.kafka.nodes import Broker
from tests.chaos.publishing import forget_topics, publish
from tests.chaos.workers import Watch, ended, wait_for, worker
from tests.commands.fixtures import Ledger
from tests.commands.running import finish
from tests.commands.traces import ALEX, OPENB_PODS

from gpuledger.database.engine import make_engine

pytestmark = pytest.mark.durable_broker


@pytest.fixture
def bootstrap(apache_kafka: Broker) -> str:
    """Apache Kafka without any of the product's topics."""
    forget_topics(apache_kafka.bootstrap)
    return apache_kafka.bootstrap


def test_an_idle_worker_is_fenced_when_another_of_its_name_reads_on(ledger: Ledger, bootstrap: str) -> None:
    """The other has the partitions at once: it need not wait until the first one is taken for dead."""
    publish(bootstrap, [("clustercockpit", ALEX)])
    watch = Watch(ledger)
    with ended(worker(ledger, bootstrap, "--name", "one")) as first:
        assert wait_for(lambda: watch.position > 0, first)
        first.send_signal(signal.SIGSTOP)
        with ended(worker(ledger, bootstrap, "--name", "one")) as second:
            assert wait_for(lambda: watch.epoch == 2, second)
            counts = publish(bootstrap, [("clustercockpit", ALEX)])
            assert wait_for(lambda: watch.position == 2 * counts["gpu.scheduler.events"], second)
            heads = ledger.heads()

            first.send_signal(signal.SIGCONT)
            ran = finish(first, within_s=60)

            assert ran.status == 75, ran.err
            assert "nothing was written" in ran.err
            assert "Traceback" not in ran.err
            assert second.poll() is None, "the rightful worker goes on"
    assert ledger.heads() == heads
    ledger.checked_digest()


def test_a_worker_that_is_paused_within_its_transaction_cannot_block_the_book(
    ledger: Ledger, bootstrap: str
) -> None:
    counts = publish(bootstrap, [("openb", OPENB_PODS)])
    watch = Watch(ledger)
    with ended(worker(ledger, bootstrap, "--once")) as first:
        assert wait_for(lambda: watch.position > 0, first)
        # It comes to wait for the book's lock, is paused there, and so gets the lock while it sleeps.
        with _locked(ledger, "openb") as waiting:
            assert wait_for(waiting, first)
            first.send_signal(signal.SIGSTOP)
        began = time.monotonic()

        second = finish(worker(ledger, bootstrap, "--once"))

        assert second.status == 0, second.err
        assert time.monotonic() - began < 60
        assert watch.standing() == (2, counts["gpu.scheduler.events"])
        heads = ledger.heads()
        first.send_signal(signal.SIGCONT)
        ran = finish(first, within_s=60)
    assert ran.status == 75, ran.err
    assert "Traceback" not in ran.err
    assert ledger.heads() == heads
    assert ledger.usage("cluster")["total_gpu_hours"] == "51470.674"
    ledger.checked_digest()


@contextmanager
def _locked(ledger: Ledger, book: str) -> Iterator["_Waiting"]:
    engine = make_engine(ledger.url)
    with engine.begin() as connection:
        connection.execute(
            sa.text("SELECT 1 FROM ledger.books WHERE book = :book FOR UPDATE"), {"book": book}
        )
        yield _Waiting(ledger)
    engine.dispose()


class _Waiting:
    """Tells whether anybody waits for a lock."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def __call__(self) -> bool:
        waiting = (
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return self._ledger.rows(waiting) != []


def test_each_worker_that_starts_fences_the_one_before(ledger: Ledger, bootstrap: str) -> None:
    counts = publish(bootstrap, [("clustercockpit", ALEX)])
    watch = Watch(ledger)
    with ended(worker(ledger, bootstrap)) as first:
        assert wait_for(lambda: watch.position == counts["gpu.scheduler.events"], first)
        first.send_signal(signal.SIGINT)
        ran = finish(first, within_s=60)
    assert ran.status == 130
    assert isinstance(first, subprocess.Popen)

    again = finish(worker(ledger, bootstrap, "--once"))

    assert again.status == 0
    assert "0 accepted, 0 repeated, 0 dead-lettered" in again.err
    assert watch.epoch == 2
