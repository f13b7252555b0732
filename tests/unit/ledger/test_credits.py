"""What a run gets back for a hardware failure: its end, since the last checkpoint or the start, up to the cap."""

import itertools
from collections.abc import Sequence

import pytest

from gpuledger.events.incident import CREDIT_CAP_S, CreditGranted, CreditReversed
from gpuledger.events.workload import Checkpointed
from gpuledger.ledger.credits import Credit, credit
from gpuledger.ledger.facts import Known

HOUR = 3600
RUN = {"cluster": "alpha", "workload": "w1", "run": "r1"}


def known(at_s: int, fact: CreditGranted | CreditReversed | Checkpointed) -> Known:
    return Known(fact, at_s, "test", b"")


def granted(at_s: int, incident: str = "i1", cap_s: int = CREDIT_CAP_S) -> Known:
    return known(at_s, CreditGranted(**RUN, incident=incident, cap_s=cap_s))


def reversed_(at_s: int, incident: str = "i1") -> Known:
    return known(at_s, CreditReversed(**RUN, incident=incident, reason="false alarm", by="grace"))


def saved(at_s: int) -> Known:
    return known(at_s, Checkpointed(**RUN))


TEN = 10 * HOUR
CASES = {
    "nobody granted one": ([], [], (0, TEN), None),
    "no longer than the cap: since the start": ([granted(TEN)], [], (8 * HOUR, TEN), ("i1", 8 * HOUR, TEN)),
    "the cap before the end": ([granted(TEN)], [], (0, TEN), ("i1", 6 * HOUR, TEN)),
    "a cap of its own": ([granted(TEN, cap_s=HOUR)], [], (0, TEN), ("i1", 9 * HOUR, TEN)),
    "a cap of nothing": ([granted(TEN, cap_s=0)], [], (0, TEN), None),
    "since the last checkpoint": (
        [granted(TEN)],
        [saved(9 * HOUR), saved(7 * HOUR)],
        (0, TEN),
        ("i1", 9 * HOUR, TEN),
    ),
    "a checkpoint before the cap": ([granted(TEN)], [saved(HOUR)], (0, TEN), ("i1", 6 * HOUR, TEN)),
    "a checkpoint at the end saved everything": ([granted(TEN)], [saved(TEN)], (0, TEN), None),
    "checkpoints outside the run are none of it": (
        [granted(TEN)],
        [saved(HOUR), saved(TEN + 1)],
        (8 * HOUR, TEN),
        ("i1", 8 * HOUR, TEN),
    ),
    "a run of no length": ([granted(TEN)], [], (TEN, TEN), None),
    "of two incidents the first": (
        [granted(TEN, "later"), granted(TEN - 60, "sooner", HOUR)],
        [],
        (0, TEN),
        ("sooner", 9 * HOUR, TEN),
    ),
    "of two at one moment the first by name": (
        [granted(TEN, "b"), granted(TEN, "a")],
        [],
        (0, TEN),
        ("a", 6 * HOUR, TEN),
    ),
    "reversed for good": ([granted(TEN), reversed_(TEN + 1)], [], (0, TEN), None),
    "reversed, whenever that was said to be": ([granted(TEN), reversed_(0)], [], (0, TEN), None),
    "granted again after the reversal": (
        [granted(TEN), reversed_(TEN + 1), granted(TEN + 2)],
        [],
        (0, TEN),
        None,
    ),
    "the first reversed, the second stands": (
        [granted(TEN - 60, "i1"), granted(TEN, "i2"), reversed_(TEN + 1, "i1")],
        [],
        (0, TEN),
        ("i2", 6 * HOUR, TEN),
    ),
    "a reversal of what was not granted": (
        [granted(TEN), reversed_(TEN, "other")],
        [],
        (0, TEN),
        ("i1", 6 * HOUR, TEN),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_run_is_given_back(case: str) -> None:
    claims, checkpoints, (from_s, to_s), expected = CASES[case]
    wanted = None if expected is None else Credit("r1", *expected)
    orders: Sequence[tuple[Known, ...]] = list(itertools.permutations(claims))
    for order in orders:
        assert credit(order, checkpoints[::-1], from_s, to_s) == wanted
        assert credit(order, checkpoints, from_s, to_s) == wanted
