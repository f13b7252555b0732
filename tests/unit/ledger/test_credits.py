"""What a run gets back for a hardware failure: its newest charges, since the last checkpoint, up to the cap."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import pytest

from gpuledger.events.incident import CREDIT_CAP_S, CreditGranted, CreditReversed, CreditWithdrawn
from gpuledger.events.workload import Checkpointed
from gpuledger.ledger.credits import Credit, Occupancy, credit
from gpuledger.ledger.facts import Known

HOUR = 3600
TEN = 10 * HOUR
RUN = {"cluster": "alpha", "workload": "w1", "run": "r1"}

Claim = CreditGranted | CreditWithdrawn | CreditReversed


def known(at_s: int, fact: Claim | Checkpointed) -> Known:
    return Known(fact, at_s, "test", b"")


def granted(at_s: int, incident: str = "i1", cap_s: int = CREDIT_CAP_S, basis: int = 0) -> Known:
    return known(at_s, CreditGranted(**RUN, incident=incident, cap_s=cap_s, basis=basis))


def withdrawn(basis: int, incident: str = "i1") -> Known:
    return known(TEN, CreditWithdrawn(**RUN, incident=incident, basis=basis))


def reversed_(at_s: int, incident: str = "i1") -> Known:
    return known(at_s, CreditReversed(**RUN, incident=incident, reason="false alarm", by="grace"))


def saved(at_s: int) -> Known:
    return known(at_s, Checkpointed(**RUN))


class Case(NamedTuple):
    """A run that was charged over some spans, the first of which is its start, and what it gets back."""

    claims: list[Known]
    expected: list[tuple[str, int, int]]
    checkpoints: Sequence[Known] = ()
    charged: Sequence[tuple[int, int]] = ((0, TEN),)
    to_s: int = TEN
    reason: str = "failed"


CASES = {
    "nobody granted one": Case([], []),
    "no longer than the cap: since the start": Case(
        [granted(TEN)], [("i1", 8 * HOUR, TEN)], charged=[(8 * HOUR, TEN)]
    ),
    "the cap before the end": Case([granted(TEN)], [("i1", 6 * HOUR, TEN)]),
    "a cap of its own": Case([granted(TEN, cap_s=HOUR)], [("i1", 9 * HOUR, TEN)]),
    "a cap of nothing": Case([granted(TEN, cap_s=0)], []),
    "since the last checkpoint": Case(
        [granted(TEN)], [("i1", 9 * HOUR, TEN)], [saved(9 * HOUR), saved(7 * HOUR)]
    ),
    "a checkpoint before the cap": Case([granted(TEN)], [("i1", 6 * HOUR, TEN)], [saved(HOUR)]),
    "a checkpoint at the end saved everything": Case([granted(TEN)], [], [saved(TEN)]),
    "checkpoints outside the run are none of it": Case(
        [granted(TEN)], [("i1", 8 * HOUR, TEN)], [saved(HOUR), saved(TEN + 1)], [(8 * HOUR, TEN)]
    ),
    "a run of no length": Case([granted(TEN)], [], charged=[]),
    "of two incidents the first": Case(
        [granted(TEN, "later"), granted(TEN - 60, "sooner", HOUR)], [("sooner", 9 * HOUR, TEN)]
    ),
    "of two at one moment the first by name": Case(
        [granted(TEN, "b"), granted(TEN, "a")], [("a", 6 * HOUR, TEN)]
    ),
    "reversed for good": Case([granted(TEN), reversed_(TEN + 1)], []),
    "reversed, whenever that was said to be": Case([granted(TEN), reversed_(0)], []),
    "granted again after the reversal": Case(
        [granted(TEN), reversed_(TEN + 1), granted(TEN + 2, basis=1)], []
    ),
    "the first reversed, the second stands": Case(
        [granted(TEN - 60, "i1"), granted(TEN, "i2"), reversed_(TEN + 1, "i1")], [("i2", 6 * HOUR, TEN)]
    ),
    "a reversal of what was not granted": Case(
        [granted(TEN), reversed_(TEN, "other")], [("i1", 6 * HOUR, TEN)]
    ),
    "withdrawn": Case([granted(TEN), withdrawn(1)], []),
    "withdrawn, and granted after all": Case(
        [granted(TEN), withdrawn(1), granted(TEN, basis=2)], [("i1", 6 * HOUR, TEN)]
    ),
    "the first withdrawn, the second stands": Case(
        [granted(TEN - 60, "i1"), granted(TEN, "i2"), withdrawn(1)], [("i2", 6 * HOUR, TEN)]
    ),
    "it ended as it was meant to": Case([granted(TEN)], [], reason="COMPLETED"),
    "it reached its own limit": Case([granted(TEN)], [], reason="TIMEOUT"),
    "a sibling was cancelled": Case([granted(TEN)], [("i1", 6 * HOUR, TEN)], reason="CANCELLED by 1001"),
    "charged up to five hours before the end": Case(
        [granted(TEN)], [("i1", HOUR, 5 * HOUR)], charged=[(0, 5 * HOUR)]
    ),
    "charged for less than the cap": Case([granted(TEN)], [("i1", 0, HOUR)], charged=[(0, HOUR)]),
    "charged for less than it lost, here and there": Case(
        [granted(TEN)],
        [("i1", 0, HOUR), ("i1", 3 * HOUR, 4 * HOUR), ("i1", 9 * HOUR, TEN)],
        charged=[(0, HOUR), (3 * HOUR, 4 * HOUR), (9 * HOUR, TEN)],
    ),
    "no more than was lost, though more was charged": Case(
        [granted(TEN)],
        [("i1", 4 * HOUR, 5 * HOUR)],
        [saved(9 * HOUR)],
        [(0, 5 * HOUR)],
    ),
    "never charged": Case([granted(TEN)], [], charged=[]),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_run_is_given_back(case: str) -> None:
    claims, expected, checkpoints, charged, to_s, reason = CASES[case]
    run = Occupancy(charged[0][0] if charged else 0, to_s, charged, reason)
    for order in itertools.permutations(claims):
        assert credit(order, checkpoints[::-1], run) == [Credit("r1", *part) for part in expected]
        assert credit(order, checkpoints, run) == [Credit("r1", *part) for part in expected]
