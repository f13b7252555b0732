"""From a submission or an end to its orders in the service, against a full cycle: a long queue in a real ledger.

Both read what they need, decide and record; the clock runs for the database, too.
"""

import random
import time
from statistics import median
from typing import Any

import pytest
from tests.conftest import FORM
from tests.integration.ledger.books import CLUSTER, HOUR, Ledger, ended, registered, started, submitted, told

from gpuledger.database.engine import detached
from gpuledger.events.registry import Fact
from gpuledger.kernel.clock import FixedClock, instant
from gpuledger.policy.amending import Base
from gpuledger.policy.service import Issuing

pytestmark = [pytest.mark.bench, pytest.mark.timeout(3600)]

WAITING = {"short": 10_000, "full": 100_000}[FORM]
HOSTS, ACCOUNTS, BATCH, NOW_S = 200, 50, 1_000, 1_800_000_000
CYCLES, EVENTS = 2, 6
PART_MAX = {"short": 0.25, "full": 0.05}[FORM]
"""What a submission may take of a full cycle, from the look at the book to its commit."""
END_PART_MAX = {"short": 0.4, "full": 0.05}[FORM]
"""What an end may take, with the starts on what it left."""


def fill(ledger: Ledger) -> None:
    """Hosts of 8 GPUs with a run of 7 on each, and a queue that finds no room."""
    rng = random.Random(1)
    ledger.append(*(told(0, registered(f"h{n:03}", 8)) for n in range(HOSTS)))
    for n in range(HOSTS):
        account = f"org/team{n % ACCOUNTS}"
        ledger.append(
            told(
                NOW_S - HOUR,
                submitted(f"r{n:03}", account=account, gpus_milli=7000, minimum_runtime_s=8 * HOUR),
            ),
            told(NOW_S - HOUR, started(f"r{n:03}", gpus_milli=7000, hosts=[f"h{n:03}"])),
        )
    for first in range(0, WAITING, BATCH):
        ledger.append(
            *(
                told(
                    NOW_S - HOUR + n % HOUR,
                    submitted(
                        f"w{n:06}",
                        account=f"org/team{rng.randrange(ACCOUNTS)}",
                        gpus_milli=1000 * rng.choice([2, 4, 8, 16, 64]),
                        minimum_runtime_s=rng.choice([600, HOUR, 4 * HOUR]),
                    ),
                )
                for n in range(first, first + BATCH)
            )
        )
    ledger.change("ANALYZE")


def answer(ledger: Ledger, issuing: Issuing, base: Base, fact: Fact, at_s: int) -> tuple[Base, Any, float]:
    """Tell of something, and have it answered; return what came of it, and from the look at the book to the commit."""
    ledger.append(told(at_s, fact))
    began = time.perf_counter()
    found = issuing.amend(base, at_s)
    taken_s = time.perf_counter() - began
    assert found is not None
    assert found.fact is not None
    assert found.base is not None
    return found.base, found.fact.record["decisions"], taken_s


def test_a_submission_and_an_end_are_answered_in_a_small_part_of_a_full_cycle(ledger: Ledger) -> None:
    ledger.clock = FixedClock(instant(NOW_S))
    fill(ledger)
    full, submissions, ends = [], [], []
    at_s = NOW_S
    with detached(ledger.engine) as connection:
        issuing = Issuing(connection, ledger.clock, ledger.calendar)
        for cycle in range(CYCLES):
            at_s += 60
            began = time.perf_counter()
            base = issuing.issue(CLUSTER, at_s).base
            full.append(time.perf_counter() - began)
            assert base is not None
            for event in range(EVENTS):
                base.prepared.settled()
                at_s += 1
                name, account = f"debug{cycle}.{event}", f"org/team{event}"
                asked = submitted(name, account=account, gpus_milli=1000, minimum_runtime_s=600)
                base, decisions, taken_s = answer(ledger, issuing, base, asked, at_s)
                assert [one["workload"] for one in decisions] == [name]
                submissions.append(taken_s)
            for event in range(EVENTS):
                base.prepared.settled()
                at_s += 1
                over = ended(f"r{HOSTS - 1 - EVENTS * cycle - event:03}")
                base, decisions, taken_s = answer(ledger, issuing, base, over, at_s)
                assert "start" in [one["action"] for one in decisions]
                ends.append(taken_s)
    full_s = min(full)
    for what, taken, part_max in (("a submission", submissions, PART_MAX), ("an end", ends, END_PART_MAX)):
        part = median(taken) / full_s
        print(
            f"\n{WAITING} waiting: a full cycle {full_s:.2f} s, {what} {median(taken):.3f} s ({min(taken):.3f} to"
            f" {max(taken):.3f}), {part:.3f} of the full one, at most {part_max} allowed"
        )
        assert part <= part_max
