"""A tick of a book costs little more than writing what it adds, however long its runs have gone on."""

import time
from statistics import median

import psycopg
import pytest
from tests.integration.ledger.books import CLUSTER, HOUR, NOON, Ledger, started, submitted, told

from gpuledger.database.engine import writing
from gpuledger.ledger import ticking

pytestmark = [pytest.mark.bench, pytest.mark.timeout(3600)]

RUNS = {"short": (500, 5_000), "full": (1_000, 10_000)}
"""Few open runs, and ten times as many."""

TICKS = 5
COPY_MAX = 8.0
GROWTH_MAX = 12.0
START_S = int(NOON.timestamp()) - 20 * HOUR

POSTED = """
CREATE TABLE bare (LIKE ledger.postings INCLUDING ALL) PARTITION BY RANGE (recorded_at);
CREATE TABLE bare_all PARTITION OF bare DEFAULT;
"""
NEWEST = "SELECT * FROM ledger.postings WHERE seq = (SELECT max(seq) FROM ledger.postings)"


def _begin(ledger: Ledger, first: int, count: int) -> None:
    """Let runs begin, each on a host of its own."""
    for at in range(first, first + count, 1_000):
        some = range(at, min(at + 1_000, first + count))
        ledger.append(
            *(told(START_S, submitted(f"w{n}")) for n in some),
            *(told(START_S, started(f"w{n}", hosts=[f"h{n}"])) for n in some),
        )


def _ticked(ledger: Ledger, hours: range) -> list[float]:
    """Tick hour by hour; return how long each took."""
    took = []
    for hour in hours:
        began = time.perf_counter()
        with writing(ledger.engine) as writer:
            ticking.tick(writer, CLUSTER, START_S + hour * HOUR, clock=ledger.clock, calendar=ledger.calendar)
        took.append(time.perf_counter() - began)
    return took


def _copied(ledger: Ledger, postings: int) -> float:
    """Return how long COPY takes for the postings of the newest tick, into a table with the same keys and indexes."""
    with psycopg.connect(ledger.url.replace("+psycopg", "")) as connection:
        connection.execute("DROP TABLE IF EXISTS bare")
        connection.execute(POSTED)
        rows = connection.execute(NEWEST).fetchall()
        assert len(rows) == postings
        began = time.perf_counter()
        with connection.cursor().copy("COPY bare FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        connection.commit()
        return time.perf_counter() - began


def test_a_tick_costs_what_it_adds(ledger: Ledger, test_form: str) -> None:
    """Against COPY of its postings; ten times the runs cost about ten times as much, and the age of a run nothing.

    A tick after the first one has no new runs to look at.
    """
    few, many = RUNS[test_form]
    _begin(ledger, 0, few)
    _ticked(ledger, range(1, 2))
    small = median(_ticked(ledger, range(2, 2 + TICKS)))
    _begin(ledger, few, many - few)
    _ticked(ledger, range(8, 9))
    large = median(_ticked(ledger, range(9, 9 + TICKS)))
    bare = median(_copied(ledger, 2 * many) for _ in range(3))
    print(
        f"\ntick of {few} open runs {small * 1000:.0f} ms, of {many} {large * 1000:.0f} ms: x {large / small:.1f}"
    )
    print(
        f"COPY of its {2 * many} postings {bare * 1000:.0f} ms: the tick takes {large / bare:.1f} times as long"
    )
    assert large / small <= GROWTH_MAX
    assert large / bare <= COPY_MAX
