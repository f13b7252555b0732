"""What a full cycle costs with its name and its record, beside deciding it: 2,000 hosts, 5,000 runs, a long queue."""

import math
import time
from dataclasses import replace

import pytest
from tests.bench import bare_decisions
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

ROUNDS = 3
PART_MAX = {"short": 0.75, "full": 0.85}[FORM]
"""What naming, writing down and recording a cycle may take of what deciding it took. Who waits as others do is a row;
hosts and runs are in the deciding alone, and the same at a tenth of the queue."""
BARE_MAX = {"short": 20, "full": 9}[FORM]
"""How often as many decisions could be written down, had nobody to make them, in the time of a whole cycle. Hosts and
runs are the same at a tenth of the queue."""


def test_naming_and_recording_a_cycle_takes_less_than_deciding_it(ledger: Ledger) -> None:
    """Processor time of this process; the collector rests, as it does in the service."""
    clock, calendar, config = FixedClock(instant(NOW_S)), Calendar(), PolicyConfig()
    waiting = cluster(QUEUES[-1])
    deciding = naming = recording = bare = math.inf
    for n in range(ROUNDS):
        bare_s = bare_decisions.seconds_of(waiting.pending)
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
        bare = min(bare, (recorded_s - began) / bare_s)
        assert decided.issued.waiting + len(decided.issued.record["decisions"]) >= QUEUES[-1]
    part = (naming + recording) / deciding
    print(
        f"\n{QUEUES[-1]} waiting: decided in {deciding:.2f} s, named and written down in {naming:.2f} s, recorded in"
        f" {recording:.2f} s, {deciding + naming + recording:.2f} s in all; {part:.2f} of deciding it, at most"
        f" {PART_MAX} allowed; {bare:.1f} times what writing as many answers takes, at most {BARE_MAX} allowed"
    )
    assert part <= PART_MAX
    assert bare <= BARE_MAX
