"""``why`` is read from indexed rows: it takes no longer beside a long queue than beside a short one.

50 ms is the target. The gates are ratios of one run: to a bare look-up of one row by its primary key, and to a queue
of a tenth of the length.
"""

import random
import time
from collections.abc import Callable
from statistics import median

import pytest
from tests.conftest import FORM
from tests.integration.ledger.books import CLUSTER, HOUR, Ledger, registered, started, submitted, told

from gpuledger.database.engine import Reader, reading
from gpuledger.kernel.clock import FixedClock, instant
from gpuledger.ledger.copying import driver
from gpuledger.policy.service import issue_cycle
from gpuledger.policy.why import why

pytestmark = [pytest.mark.bench, pytest.mark.timeout(3600)]

WAITING = {"short": 5_000, "full": 100_000}[FORM]
READS = 60
BATCH = 1_000
NOW_S = 1_800_000_000
GROWTH_MAX = 2.0
BARE_MAX = 60.0


def queue(ledger: Ledger, first: int, last: int) -> None:
    """Let workloads of many accounts wait."""
    rng = random.Random(first)
    for start in range(first, last, BATCH):
        ledger.append(
            *(
                told(
                    NOW_S - HOUR + n % HOUR,
                    submitted(
                        f"w{n:06}",
                        account=f"org/team{n % 50}",
                        gpus_milli=1000 * rng.choice([1, 2, 8, 16]),
                        minimum_runtime_s=rng.choice([600, 3600]),
                    ),
                )
                for n in range(start, min(start + BATCH, last))
            )
        )


def in_turns(
    ledger: Ledger, names: list[str], reads: tuple[Callable[[Reader, str], object], ...]
) -> list[list[float]]:
    """Return how long each read took for each name, each in a transaction of its own; what loads one loads all."""
    took: list[list[float]] = []
    for name in names:
        took.append([])
        for read in reads:
            began = time.perf_counter()
            with reading(ledger.engine) as reader:
                read(reader, name)
            took[-1].append(time.perf_counter() - began)
    return took


def test_why_takes_no_longer_beside_a_long_queue(ledger: Ledger) -> None:
    ledger.clock = FixedClock(instant(NOW_S))
    ledger.append(*(told(0, registered(f"h{n:03}", 8)) for n in range(100)))
    for n in range(100):
        ledger.append(
            told(NOW_S - HOUR, submitted(f"r{n:03}", account="org/team1", minimum_runtime_s=7200)),
            told(NOW_S - HOUR, started(f"r{n:03}", hosts=[f"h{n:03}"])),
        )

    def ask(reader: Reader, name: str) -> None:
        found = why(reader, name, cluster=CLUSTER, at_s=NOW_S + 300)
        assert found.decided is not None

    def bare(reader: Reader, _: str) -> None:
        driver(reader).execute("SELECT head FROM ledger.books WHERE book = %s", (CLUSTER,)).fetchone()

    found: list[float] = []
    for number, waiting in enumerate((WAITING // 10, WAITING)):
        queue(ledger, 0 if number == 0 else WAITING // 10, waiting)
        at_s = NOW_S + 60 * number
        issue_cycle(ledger.engine, CLUSTER, at_s=at_s, clock=ledger.clock, calendar=ledger.calendar)
        ledger.change("ANALYZE")
        names = [f"w{n:06}" for n in random.Random(1).sample(range(WAITING // 10), READS)]
        in_turns(ledger, names[:5], (ask, bare))
        took = in_turns(ledger, names, (ask, bare))
        found.append(median(why_s / bare_s for why_s, bare_s in took))
        why_s, bare_s = (median(column) for column in zip(*took, strict=True))
        print(
            f"\n{waiting:>7} waiting: why {1000 * why_s:.1f} ms, a row by its primary key {1000 * bare_s:.2f} ms,"
            f" {found[-1]:.0f} times that"
        )
    assert found[-1] <= GROWTH_MAX * found[0]
    assert found[-1] <= BARE_MAX
