"""Ingest in a process of its own, as a worker beside an API server: at full speed or paced, on and off at will."""

import multiprocessing as mp
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event as Flag

from tests.integration.ledger.books import CLUSTER, at, ended, started, submitted, told

from gpuledger.database.engine import make_engine
from gpuledger.events.envelope import Event
from gpuledger.ingest.collector import relax_collector
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock

ACCOUNTS = 16
OPEN_RUNS = 200
START_S = at("2026-11-01T00:00:00Z")
STEP_S = 60
SPAN_S = 2 * 86_400


def batches(runs: int, *, cluster: str = CLUSTER, start_s: int = START_S) -> Iterator[list[Event]]:
    """Yield batches for ever: so many runs start in each, and as many end, ``OPEN_RUNS`` after their start.

    Time goes round in two days, so that the number of days, periods and balances is bounded.
    """
    for first in count(0, runs):
        yield [event for number in range(first, first + runs) for event in _step(number, cluster, start_s)]


def _step(number: int, cluster: str, start_s: int) -> list[Event]:
    at_s = start_s + number * STEP_S % SPAN_S
    account = f"org/team{number % ACCOUNTS}"
    events = [
        told(at_s, submitted(f"w{number}", account=account, cluster=cluster), id=f"{number}/submit"),
        told(at_s, started(f"w{number}", cluster=cluster), id=f"{number}/start"),
    ]
    if (old := number - OPEN_RUNS) >= 0:
        end_s = start_s + old * STEP_S % SPAN_S + OPEN_RUNS * STEP_S
        events.append(told(end_s, ended(f"w{old}", cluster=cluster), id=f"{old}/end"))
    return events


class Load:
    """The switch and the counter of a process that ingests."""

    def __init__(self, on: Flag, pace: "Synchronized[float]", events: "Synchronized[int]") -> None:
        self._on, self._pace, self._events = on, pace, events

    @contextmanager
    def on(self, events_per_s: float = 0) -> Iterator[None]:
        """Ingest while the block runs, at full speed unless paced."""
        self._pace.value = events_per_s
        self._on.set()
        try:
            yield
        finally:
            self._on.clear()
            time.sleep(0.3)  # the batch at hand is finished

    def events(self) -> int:
        """Return how many events were booked so far."""
        return self._events.value


@contextmanager
def ingesting(database_url: str, *, runs: int) -> Iterator[Load]:
    """Start a process that ingests batches of so many runs when it is told to, and end it afterwards."""
    context = mp.get_context("spawn")
    on, pace, events = context.Event(), context.Value("d", 0.0), context.Value("q", 0)
    process = context.Process(target=_ingest, args=(database_url, runs, on, pace, events), daemon=True)
    process.start()
    try:
        yield Load(on, pace, events)
    finally:
        process.kill()
        process.join()


def _ingest(
    database_url: str, runs: int, on: Flag, pace: "Synchronized[float]", events: "Synchronized[int]"
) -> None:
    relax_collector()
    intake = Intake(make_engine(database_url), SystemClock(), Calendar())
    due = 0.0
    for batch in batches(runs):
        on.wait()
        due = max(due, time.perf_counter())
        intake.take(batch)
        events.value += len(batch)
        if pace.value:
            due += len(batch) / pace.value
            time.sleep(max(0.0, due - time.perf_counter()))
        else:
            due = 0.0
