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

from gpuledger.database.engine import reading, writing
from gpuledger.events.budget import AccountCreated, PolicyChanged
from gpuledger.events.workload import Resized
from gpuledger.kernel.clock import FixedClock, seconds
from gpuledger.ledger import state
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


BECAME = {
    "more GPUs": {"gpus_milli": 16_000},
    "heavier GPUs": {"gpu_model": "B200"},
    "another account": {"account": "org/speech"},
}


@pytest.mark.parametrize("what", BECAME)
@pytest.mark.parametrize(("gpu_hours", "fits"), [(16, True), (15, False)])
def test_a_start_that_became_more_than_it_was_admitted_for_must_fit_as_that(
    ledger: Ledger, what: str, gpu_hours: int, *, fits: bool
) -> None:
    """8 GPUs were admitted for an hour. What starts weighs as much as 16, or is paid by ``org/speech``, who uses 8."""
    payer = "org/speech" if what == "another account" else "org/vision"
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/vision", "org/speech")))
    order(ledger, PolicyChanged(policy="rate_card", weights={"B200": 2000}))
    hard(ledger)
    hard(ledger, "org/speech")
    ledger.append(
        told(0, granted("org/vision", PERIOD, 8 * GPU_HOUR)),
        told(1, granted(payer, PERIOD, (gpu_hours - 8) * GPU_HOUR)),
        told(NOW_S, submitted(minimum_runtime_s=HOUR)),
    )
    assert ask(ledger).decision.klass == "allocated"
    ledger.append(told(NOW_S, started(**BECAME[what])))
    assert look(ledger, 60) == ((["w1/r1"], []) if fits else ([], ["w1/r1"]))
    assert look(ledger, 120) == ([], [])
    found = ledger.balance(payer, PERIOD, now=(NOON + dt.timedelta(minutes=30)).isoformat())
    weight = 8 if what == "another account" else 16
    if fits:
        # Its protection is the hour that it was admitted for.
        assert (found.charged_gpu_ms, found.held_gpu_ms) == (weight * GPU_HOUR // 2, weight * GPU_HOUR // 2)
        with reading(ledger.engine) as reader:
            assert [run.protected_until_s for run in state.running(reader, CLUSTER, NOW_S + 120)] == [
                NOW_S + HOUR
            ]
    else:
        # What it overshot is the time until it was looked at.
        assert (found.charged_gpu_ms, found.held_gpu_ms) == (weight * GPU_HOUR // 60, 0)
    assert found.available_gpu_ms >= 0
    assert is_sound(ledger)


def test_a_run_that_grows_within_its_protection_must_fit_as_what_it_became(running: Ledger) -> None:
    """8 of 12 GPU-hours are held; half an hour of 8 more fits, of 9 more it does not."""
    half = NOW_S + HOUR // 2
    running.append(
        told(half, Resized(cluster=CLUSTER, workload="w1", run="r1", gpus_milli=16_000, hosts=["h1"]))
    )
    assert look(running, HOUR // 2) == (["w1/r1"], [])
    running.append(
        told(half + 1, Resized(cluster=CLUSTER, workload="w1", run="r1", gpus_milli=17_000, hosts=["h1"]))
    )
    assert look(running, HOUR // 2 + 1) == ([], ["w1/r1"])
    assert is_sound(running)


def test_of_two_that_became_more_the_older_is_asked_first(ledger: Ledger) -> None:
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/vision")))
    hard(ledger)
    ledger.append(told(0, granted("org/vision", PERIOD, 24 * GPU_HOUR)))
    ledger.append(*(told(NOW_S, submitted(name, minimum_runtime_s=HOUR)) for name in ("w1", "w2")))
    assert {ask(ledger, name).decision.klass for name in ("w1", "w2")} == {"allocated"}
    ledger.append(
        told(NOW_S, started("w2", gpus_milli=16_000)), told(NOW_S + 1, started("w1", gpus_milli=16_000))
    )
    assert look(ledger, 60) == (["w2/r1"], ["w1/r1"])


def test_a_start_of_less_than_was_admitted_is_covered(running: Ledger) -> None:
    running.append(told(NOW_S, submitted("w2", gpus_milli=4000, minimum_runtime_s=HOUR)))
    assert ask(running, "w2").decision.klass == "allocated"
    running.append(told(NOW_S, started("w2", gpus_milli=2000)))
    assert look(running, 60) == ([], [])


def test_what_was_refused_runs_unallocated_whatever_class_its_start_claims(running: Ledger) -> None:
    running.append(told(NOW_S, submitted("w2", minimum_runtime_s=HOUR)))
    assert ask(running, "w2").decision.klass == "unallocated"
    running.append(told(NOW_S, started("w2", klass="allocated", gpus_milli=16_000)))
    assert look(running, 60) == ([], [])
    assert running.balance("org/vision", PERIOD).unallocated_gpu_ms == 0
    later = (NOON + dt.timedelta(hours=1)).isoformat()
    assert running.balance("org/vision", PERIOD, now=later).unallocated_gpu_ms == 16 * GPU_HOUR


def test_a_soft_accounts_run_is_left_alone(ledger: Ledger) -> None:
    ledger.append(told(NOW_S, submitted(minimum_runtime_s=HOUR)), told(NOW_S, started()))
    assert look(ledger, 10 * HOUR) == ([], [])
