"""Soft landing: a hard account's run goes on while its next slice fits, and is unallocated from then on."""

import datetime as dt

import pytest
from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    NOON,
    Ledger,
    ended,
    granted,
    started,
    submitted,
    told,
)
from tests.integration.ledger.test_admission import ask, hard, is_sound, order

from gpuledger.database.engine import writing
from gpuledger.events.budget import AccountCreated
from gpuledger.kernel.clock import FixedClock, seconds
from gpuledger.ledger.landing import SLICE_S, Landed, land

NOW_S = seconds(NOON)
PERIOD = "2026-12"


@pytest.fixture
def running(ledger: Ledger) -> Ledger:
    """A hard account with 12 GPU-hours runs 8 GPUs, protected for an hour."""
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/vision")))
    hard(ledger)
    ledger.append(
        told(0, granted("org/vision", PERIOD, 12 * GPU_HOUR)), told(NOW_S, submitted(minimum_runtime_s=HOUR))
    )
    ask(ledger)
    ledger.append(told(NOW_S, started()))
    return ledger


def look(ledger: Ledger, after_s: int) -> Landed:
    ledger.clock = FixedClock(NOON + dt.timedelta(seconds=after_s))
    with writing(ledger.engine) as writer:
        return land(writer, CLUSTER, clock=ledger.clock, calendar=ledger.calendar)


def test_while_it_is_protected_nothing_happens(running: Ledger) -> None:
    assert look(running, HOUR - 1) == ([], [])


def test_after_protection_slice_follows_slice_until_the_budget_is_spent(running: Ledger) -> None:
    assert look(running, HOUR) == (["w1/r1"], [])
    assert look(running, HOUR + 1) == ([], [])
    assert look(running, HOUR + SLICE_S) == (["w1/r1"], [])
    assert look(running, HOUR + 2 * SLICE_S) == ([], ["w1/r1"])
    assert look(running, HOUR + 3 * SLICE_S) == ([], [])
    at_four = (NOON + dt.timedelta(hours=4)).isoformat()
    found = running.balance("org/vision", PERIOD, now=at_four)
    assert (found.charged_gpu_ms, found.unallocated_gpu_ms) == (12 * GPU_HOUR, 20 * GPU_HOUR)
    assert (found.held_gpu_ms, found.available_gpu_ms) == (0, 0)
    assert is_sound(running)


def test_a_look_that_comes_late_overshoots_by_the_time_between(running: Ledger) -> None:
    assert look(running, HOUR + HOUR) == ([], ["w1/r1"])
    found = running.balance("org/vision", PERIOD, now=(NOON + dt.timedelta(hours=2)).isoformat())
    assert found.available_gpu_ms == -4 * GPU_HOUR


def test_a_run_that_nobody_admitted_lands_too(running: Ledger) -> None:
    running.append(told(NOW_S, submitted("w2")), told(NOW_S, started("w2", gpus_milli=64_000)))
    assert look(running, 1) == ([], ["w2/r1"])
    assert is_sound(running)


def test_a_run_that_nobody_admitted_goes_on_while_its_slices_can_be_paid(running: Ledger) -> None:
    running.append(told(NOW_S, submitted("w2")), told(NOW_S, started("w2", gpus_milli=8000)))
    assert look(running, 1) == (["w2/r1"], [])
    assert look(running, SLICE_S) == ([], [])
    # Of its four GPU-hours a slice is spent, and the second before it was looked at.
    assert look(running, 1 + SLICE_S) == ([], ["w2/r1"])
    assert is_sound(running)


def test_a_refusal_that_was_used_too_late_is_no_admission(ledger: Ledger) -> None:
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/vision")))
    hard(ledger)
    ledger.append(told(NOW_S, submitted(minimum_runtime_s=8 * HOUR)))
    ask(ledger)
    ledger.append(told(NOW_S + 901, started()))
    assert look(ledger, 901) == ([], ["w1/r1"])
    found = ledger.balance("org/vision", PERIOD, now=(NOON + dt.timedelta(hours=5)).isoformat())
    assert found.charged_gpu_ms == 0


def test_the_run_that_goes_on_gets_the_slice_of_an_attempt_that_two_runs_claim(running: Ledger) -> None:
    running.append(told(0, granted("org/vision", PERIOD, 100 * GPU_HOUR)))
    ended_s = NOW_S + HOUR - 100
    running.append(told(ended_s, ended()), told(ended_s, started(run="r2")))
    assert look(running, 2 * HOUR).extended == ["w1/r2"]
    assert look(running, 2 * HOUR + 1) == ([], [])
    assert is_sound(running)


def test_a_soft_accounts_run_is_left_alone(ledger: Ledger) -> None:
    ledger.append(told(NOW_S, submitted(minimum_runtime_s=HOUR)), told(NOW_S, started()))
    assert look(ledger, 10 * HOUR) == ([], [])
