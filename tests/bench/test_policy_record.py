"""What a full cycle costs with its name and its record, beside deciding it: 2,000 hosts, 5,000 runs, a long queue."""

import math
import time
from dataclasses import replace

import pytest
from tests.bench.test_policy_cycle import NOW_S, QUEUES, cluster
from tests.conftest import FORM
from tests.integration.ledger.books import Ledger

from gpuledger.database.engine import writing
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock, instant
from gpuledger.kernel.collecting import without_collecting
from gpuledger.policy.cycle import PolicyConfig, run_cycle
from gpuledger.policy.recording import Decided, record
from gpuledger.policy.status import note

pytestmark = [pytest.mark.bench, pytest.mark.timeout(3600)]

ROUNDS, SORTS = 3, 5
PART_MAX = {"short": 0.75, "full": 0.85}[FORM]
"""What naming, writing down and recording a cycle may take of what deciding it took. Who waits as others do is a row;
hosts and runs are in the deciding alone, and the same at a tenth of the queue."""
SORTS_MAX = {"short": 200, "full": 40}[FORM]
"""How often as many keyed tuples as there are workloads could be sorted in the time of a whole cycle. At a tenth of
the queue the tuples lie in the processor's own memory, and hosts and runs are the same."""


def seconds_of_a_sort(keyed: list[tuple[int, int, str]]) -> float:
    """Return the processor time of one, of five; the collector rests."""
    with without_collecting():
        began = time.process_time()
        for _ in range(SORTS):
            sorted(keyed)
        return (time.process_time() - began) / SORTS


def test_naming_and_recording_a_cycle_takes_less_than_deciding_it(ledger: Ledger) -> None:
    """Processor time of this process; the collector rests, as it does in the service."""
    clock, calendar, config = FixedClock(instant(NOW_S)), Calendar(), PolicyConfig()
    waiting = cluster(QUEUES[-1])
    keyed = [(n * 7919 % 100_003, n, workload.workload) for n, workload in enumerate(waiting.pending)]
    deciding = naming = recording = sorts = math.inf
    for n in range(ROUNDS):
        sort_s = seconds_of_a_sort(keyed)
        state = replace(waiting, at_s=NOW_S + 60 * n)
        with without_collecting():
            began = time.process_time()
            cycle = run_cycle(state, config)
            decided_s = time.process_time()
            decided = Decided.of(state, config, {"c": n}, cycle)
            named_s = time.process_time()
            with writing(ledger.engine) as writer:
                assert record(writer, decided, clock=clock, calendar=calendar) is None
                note(writer, decided, took_ms=0, now=clock.now())
            recorded_s = time.process_time()
        deciding = min(deciding, decided_s - began)
        naming = min(naming, named_s - decided_s)
        recording = min(recording, recorded_s - named_s)
        sorts = min(sorts, (recorded_s - began) / sort_s)
        assert decided.issued.waiting + len(decided.issued.record["decisions"]) >= QUEUES[-1]
    part = (naming + recording) / deciding
    print(
        f"\n{QUEUES[-1]} waiting: decided in {deciding:.2f} s, named and written down in {naming:.2f} s, recorded in"
        f" {recording:.2f} s, {deciding + naming + recording:.2f} s in all; {part:.2f} of deciding it, at most"
        f" {PART_MAX} allowed; as long as {sorts:.0f} sorts, at most {SORTS_MAX} allowed"
    )
    assert part <= PART_MAX
    assert sorts <= SORTS_MAX
