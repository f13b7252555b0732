"""Mixed scheduler traffic of 500 requests a second is answered while an ingest worker books, without an error.

The worker is ``gpuledger ingest`` on a topic, fed at half of what it can do when it has the machine for itself: worker,
database, server and load share two cores. All of it is about one cluster: whoever writes queues at the same book. What
is answered is held against the same traffic without the worker; 500 a second are asked for in both.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import msgspec
import pytest
from tests.bench.asking import Answers, Request, get, post, stream
from tests.bench.load import SPAN_S, batches
from tests.bench.scheduling import LEAVES, ROOT, STANDING, book_a_cluster, scheduler_token
from tests.bench.serving import serving
from tests.chaos.workers import ended
from tests.commands.running import start
from tests.integration.ledger.books import CLUSTER, HOUR, Ledger, submitted

from gpuledger.database.engine import reading
from gpuledger.events.envelope import encode
from gpuledger.kernel.clock import SystemClock, seconds
from gpuledger.ledger import queries
from gpuledger.ledger.audit import verify
from gpuledger.streams.files import FileBroker
from gpuledger.streams.protocol import Message
from gpuledger.streams.topics import SCHEDULER_EVENTS

pytestmark = [pytest.mark.bench, pytest.mark.timeout(3600)]

PER_S, CONNECTIONS = 500, 24
FOR_S = {"short": 10, "full": 120}
MAXIMUM_S = 4.0
BATCH_RUNS = 20
FED_MIN, ANSWERED_MIN = 0.8, 0.5
CLOCK = SystemClock()


class Feed:
    """A topic that is written to: as much as a worker can take, or at a pace."""

    def __init__(self, folder: Path) -> None:
        broker = FileBroker(folder)
        broker.ensure_topics([SCHEDULER_EVENTS])
        self._publisher = broker.publisher()
        start_s = seconds(CLOCK.now()) - SPAN_S - 86_400  # nothing of it is to come
        self._events = (event for batch in batches(BATCH_RUNS, start_s=start_s) for event in batch)

    def publish(self, count: int) -> None:
        """Put so many more messages on the topic."""
        self._publisher.publish(
            SCHEDULER_EVENTS,
            [
                Message(CLUSTER, encode(id=event.id, source=event.source, at_s=event.at_s, data=event.data))
                for event in islice(self._events, count)
            ],
        )
        self._publisher.flush()

    @contextmanager
    def paced(self, per_s: float) -> Iterator[None]:
        """Publish so many a second while the block runs."""
        stop = threading.Event()

        def work() -> None:
            began, published = time.perf_counter(), 0
            while not stop.wait(0.05):
                due = int((time.perf_counter() - began) * per_s)
                self.publish(due - published)
                published = due

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


def _booked(ledger: Ledger) -> int:
    with reading(ledger.engine) as reader:
        return sum(status.position for status in queries.streams(reader))


def _maximum(ledger: Ledger, feed: Feed) -> float:
    """Return how many events a second the worker books when nobody else does anything."""
    feed.publish(60_000)
    while not _booked(ledger):
        time.sleep(0.02)
    began, before = time.perf_counter(), _booked(ledger)
    time.sleep(MAXIMUM_S)
    found = (_booked(ledger) - before) / (time.perf_counter() - began)
    booked = -1
    while booked != (booked := _booked(ledger)):  # what is left of it
        time.sleep(1.0)
    return found


def _traffic(number: int, token: str) -> Iterator[Request]:
    """Ask and tell what loops of a scheduler do: of 100 requests 2 write."""
    balances = [get("balance", f"/v1/balances/{leaf}?cluster={CLUSTER}", token) for leaf in [*LEAVES, ROOT]]
    orders = get("directives", f"/v1/directives/current?cluster={CLUSTER}", token)
    place = number
    for loop in range(10**9):
        name = f"told{number}-{loop}"
        yield post(
            "event",
            "/v1/events",
            encode(
                id=name,
                source="test/scheduler",
                at_s=seconds(CLOCK.now()),
                data=submitted(name, account=LEAVES[number % len(LEAVES)], minimum_runtime_s=HOUR),
            ),
            "application/cloudevents+json",
            token,
        )
        yield _admission("admission", name, token)
        for step in range(98):
            place += 1
            if step % 6 == 5:
                yield orders
            elif step % 6 == 2:
                yield _admission("admission again", STANDING[place % len(STANDING)], token)
            else:
                yield balances[place % len(balances)]


def _admission(name: str, workload: str, token: str) -> Request:
    body = msgspec.json.encode({"cluster": CLUSTER, "workload": workload})
    return post(name, "/v1/admissions", body, "application/json", token)


def _told(name: str, answers: Answers) -> None:
    print(f"\n{name}: {answers.per_s():,.0f} requests/s of {PER_S} that are asked for", end="")
    for of, took in sorted(answers.took_s.items()):
        p50, p99 = (1000 * answers.p(per_cent, of) for per_cent in (50, 99))
        print(f"; {of} {len(took) / answers.over_s:,.1f}/s, p50 {p50:.0f} ms, p99 {p99:.0f} ms", end="")


def test_mixed_traffic_is_answered_while_a_worker_books(
    ledger: Ledger, tmp_path: Path, test_form: str
) -> None:
    book_a_cluster(ledger)
    token, feed, for_s = scheduler_token(ledger), Feed(tmp_path / "streams"), FOR_S[test_form]
    settings = {"GPULEDGER_HOME": str(tmp_path), "GPULEDGER_DATABASE_URL": ledger.url}
    with (
        serving(ledger.url, tmp_path / "log", GPULEDGER_API_ACCESS="token") as port,
        ended(start("ingest", "--no-tick", settings=settings)) as worker,
    ):
        maximum = _maximum(ledger, feed)
        alone = stream(port, CONNECTIONS, for_s, lambda number: _traffic(number, token), per_s=PER_S)
        before, began = _booked(ledger), time.perf_counter()
        with feed.paced(maximum / 2):
            busy = stream(
                port, CONNECTIONS, for_s, lambda number: _traffic(number + CONNECTIONS, token), per_s=PER_S
            )
            fed = (_booked(ledger) - before) / (time.perf_counter() - began)
        assert worker.poll() is None
    _told("alone", alone)
    _told("while a worker books", busy)
    print(
        f"\n{fed:,.0f} events/s are booked meanwhile, {fed / maximum:.2f} of the {maximum:,.0f} at most;"
        f" {busy.per_s() / alone.per_s():.2f} of the requests without it, at least {ANSWERED_MIN} wanted"
    )
    assert not alone.refused, alone.refused[:3]
    assert not busy.refused, busy.refused[:3]
    assert busy.per_s() >= ANSWERED_MIN * alone.per_s()
    assert fed >= FED_MIN * maximum / 2
    with reading(ledger.engine) as reader:
        assert verify(reader).ok
