"""Fault 8: an adjustment that facts have overtaken takes back no more than stands; no net amount is negative."""

import random

import pytest
from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    NOON,
    Ledger,
    ended,
    run_of,
    started,
    submitted,
    told,
)
from tests.integration.ledger.test_admission import is_sound
from tests.integration.ledger.test_commands import PERIOD, funded, order

from gpuledger.database.engine import reading
from gpuledger.events.budget import AdjustmentPosted
from gpuledger.events.closing import LedgerTicked
from gpuledger.kernel.clock import FixedClock, instant, seconds
from gpuledger.ledger.balances import BalanceQuery, balance

__all__ = ["funded"]


def adjust(ledger: Ledger, code: str, gpu_hours: int, key: str = "adjustment") -> None:
    given = {"account": "org/vision", "cluster": CLUSTER, "period": PERIOD, "reason": "test", "by": "test"}
    order(ledger, AdjustmentPosted(code=code, gpu_ms=gpu_hours * GPU_HOUR, **given), key)  # type: ignore[arg-type]


def ends(ledger: Ledger, at_s: int, name: str = "w1") -> None:
    """The run ended then, says a source that counts more than the stream; of two such the later end counts."""
    ledger.append(told(at_s, ended(name), source="reconcile/x"))


def stands(ledger: Ledger) -> tuple[int, int, int, int]:
    """Return charged, credited, unallocated and available, in GPU-hours."""
    return told_at(ledger, seconds(NOON))


def told_at(ledger: Ledger, at_s: int, account: str = "org/vision") -> tuple[int, int, int, int]:
    """Return charged, credited, unallocated and available at an instant, in GPU-hours."""
    with reading(ledger.engine) as reader:
        found = balance(reader, account, BalanceQuery(CLUSTER, PERIOD), at_s, ledger.calendar)
    amounts = (found.charged_gpu_ms, found.credited_gpu_ms, found.unallocated_gpu_ms, found.available_gpu_ms)
    charged, credited, unallocated, available = (amount // GPU_HOUR for amount in amounts)
    return charged, credited, unallocated, available


def test_charges_that_were_taken_back_and_were_never_due_are_taken_back_once(funded: Ledger) -> None:
    adjust(funded, "charge", -8)
    assert stands(funded) == (0, 0, 0, 100)
    ends(funded, HOUR // 2)  # half an hour instead of one: of eight GPU-hours four were due
    assert stands(funded) == (0, 0, 0, 100)
    assert is_sound(funded)
    funded.append(
        *run_of(0, HOUR, "w2")
    )  # what is charged besides is taken back as far as the adjustment goes
    assert stands(funded) == (4, 0, 0, 96)
    assert is_sound(funded)


def test_a_credit_is_no_more_than_the_charge_that_is_left(funded: Ledger) -> None:
    adjust(funded, "credit", 6)
    assert stands(funded) == (8, 6, 0, 98)
    ends(funded, HOUR // 2)
    assert stands(funded) == (4, 4, 0, 100)
    assert is_sound(funded)


def test_unallocated_use_that_was_taken_back_is_not_below_nothing(funded: Ledger) -> None:
    funded.append(*run_of(0, HOUR, "w2", klass="unallocated"))
    adjust(funded, "unallocated", -8)
    ends(funded, 0, "w2")
    assert stands(funded) == (8, 0, 0, 92)
    assert is_sound(funded)


@pytest.mark.parametrize("code", ["charge", "credit"])
def test_a_run_that_goes_on_takes_up_what_was_given_back_too_much_and_no_tick_is_waited_for(
    funded: Ledger, code: str
) -> None:
    """Given back are eight GPU-hours of which four were due; eight GPUs run on from the first hour on."""
    adjust(funded, code, 8 if code == "credit" else -8)
    ends(funded, HOUR // 2)
    funded.append(told(HOUR, submitted("w2")), told(HOUR, started("w2")))
    for minutes, left in ((15, 100), (30, 100), (45, 98), (60, 96)):
        at_s = HOUR + minutes * 60
        between = told_at(funded, at_s)
        assert between[3] == left
        assert between[0] - between[1] == 100 - left
        if minutes in (15, 60):
            funded.append(told(at_s, LedgerTicked(cluster=CLUSTER)))
            assert told_at(funded, at_s) == between
    assert is_sound(funded)


def test_what_is_given_back_of_an_open_run_is_given_back_at_once(funded: Ledger) -> None:
    """What runs since the last tick stands as soon as it is shown, and can be corrected as soon."""
    funded.append(told(HOUR, LedgerTicked(cluster=CLUSTER)))
    funded.append(told(HOUR, submitted("w2", account="org/speech")), told(HOUR, started("w2")))
    funded.clock = FixedClock(instant(2 * HOUR))
    assert told_at(funded, 2 * HOUR, "org/speech") == (8, 0, 0, -8)
    given = {"account": "org/speech", "cluster": CLUSTER, "period": PERIOD, "reason": "test", "by": "test"}
    order(funded, AdjustmentPosted(code="charge", gpu_ms=-6 * GPU_HOUR, **given), "open")
    assert told_at(funded, 2 * HOUR, "org/speech") == (2, 0, 0, -2)
    funded.append(told(2 * HOUR, LedgerTicked(cluster=CLUSTER)))
    assert told_at(funded, 2 * HOUR, "org/speech") == (2, 0, 0, -2)
    assert is_sound(funded)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_facts_and_adjustments_come_no_net_is_negative_and_it_is_the_sum_at_the_end(
    funded: Ledger, seed: int
) -> None:
    """Against sums kept by hand: what the runs cost, and what was ordered on top of them."""
    chance = random.Random(seed)
    ordered = {"charge": 0, "credit": 0}
    cost, reconciled = {"w1": 8}, dict[str, int]()
    for step in range(12):
        match chance.choice(["run", "end", "charge", "credit"]):
            case "run":
                cost[f"w{step + 2}"] = 8
                funded.append(*run_of(0, HOUR, f"w{step + 2}"))
            case "end":
                name, hours = chance.choice(sorted(cost)), chance.randrange(4)
                reconciled[name] = max(hours, reconciled.get(name, 0))
                cost[name] = 8 * reconciled[name]
                ends(funded, hours * HOUR, name)
            case "charge":
                charged, credited, *_ = stands(funded)
                if take := chance.randint(0, charged - credited):
                    ordered["charge"] -= take
                    adjust(funded, "charge", -take, f"{step}")
            case "credit":
                charged, credited, *_ = stands(funded)
                if give := chance.randint(-credited, charged - credited):
                    ordered["credit"] += give
                    adjust(funded, "credit", give, f"{step}")
        charged = max(0, sum(cost.values()) + ordered["charge"])
        credited = min(max(0, ordered["credit"]), charged)
        assert stands(funded) == (charged, credited, 0, 100 - charged + credited), step
    assert is_sound(funded)
