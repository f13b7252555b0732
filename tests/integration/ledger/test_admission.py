"""Admission: what is set aside, who is funded, and that the same GPU-time is never promised twice."""

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    NOON,
    Ledger,
    at,
    ended,
    granted,
    registered,
    started,
    submitted,
    told,
)

from gpuledger.database.engine import reading, writing
from gpuledger.events.budget import AccountCreated, OverdraftSet, PolicyChanged, ShareSet
from gpuledger.events.decision import DecisionMade
from gpuledger.events.workload import Preempted, Requeued, Resized
from gpuledger.kernel.clock import FixedClock, seconds
from gpuledger.kernel.errors import NotFound, Refused
from gpuledger.ledger.admission import Admission, admit, terms
from gpuledger.ledger.admission import standing as answer_that_stands
from gpuledger.ledger.audit import verify
from gpuledger.ledger.rebuild import check, rebuild
from gpuledger.ledger.store import lock_book

NOW_S = seconds(NOON)
PERIOD = "2026-12"


def order(ledger: Ledger, *facts: Any, at_s: int = 0) -> None:  # noqa: ANN401
    ledger.append(*(told(at_s, fact) for fact in facts))


@pytest.fixture
def funded(ledger: Ledger) -> Ledger:
    """``org/vision`` has 100 GPU-hours for December and asks for 8 GPUs for an hour."""
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/vision", "org/speech")))
    ledger.append(told(0, granted("org/vision", PERIOD, 100 * GPU_HOUR)))
    ledger.append(told(NOW_S, submitted(minimum_runtime_s=HOUR)))
    return ledger


def hard(ledger: Ledger, account: str = "org/vision") -> None:
    order(ledger, OverdraftSet(account=account, overdraft="hard", reason="test", by="test"))


def ask(ledger: Ledger, workload: str = "w1") -> Admission:
    with writing(ledger.engine) as writer:
        return admit(writer, CLUSTER, workload, clock=ledger.clock, calendar=ledger.calendar)


def later(ledger: Ledger, seconds_: int) -> None:
    """Let time pass."""
    ledger.clock = FixedClock(NOON + dt.timedelta(seconds=seconds_))


def standing(ledger: Ledger, now_s: int = NOW_S, period: str = PERIOD) -> tuple[int, int, int]:
    """Return held, charged and available, in GPU-hours."""
    found = ledger.balance("org/vision", period, now=dt.datetime.fromtimestamp(now_s, dt.UTC).isoformat())
    amounts = (found.held_gpu_ms, found.charged_gpu_ms, found.available_gpu_ms)
    assert all(amount % GPU_HOUR == 0 for amount in amounts)
    held, charged, available = (amount // GPU_HOUR for amount in amounts)
    return held, charged, available


FORWARD = {
    ("grant", "issue", "budget"), ("transfer", "budget", "budget"), ("charge", "held", "spent"),
    ("charge", "budget", "spent"), ("credit", "spent", "credited"), ("credit", "issue", "budget"),
    ("expiry", "budget", "expired"), ("rollover", "expired", "budget"), ("unallocated", "free", "unallocated"),
}  # fmt: skip
"""The debit-credit table of DESIGN section 7; corrections run the other way."""

TABLE = {
    *FORWARD,
    *((code, credit, debit) for code, debit, credit in FORWARD),
    ("hold", "budget", "held"),
    ("release", "held", "budget"),
}


def is_sound(ledger: Ledger) -> bool:
    """The chain verifies, everything follows from the journal, and no posting is outside the debit-credit table."""
    assert set(ledger.rows("SELECT DISTINCT code, debit_pot, credit_pot FROM ledger.postings")) <= TABLE
    with reading(ledger.engine) as reader:
        assert verify(reader).ok
        assert check(reader, ledger.calendar).differences == ()
    with writing(ledger.engine) as writer:
        rebuild(writer, ledger.calendar)
    with reading(ledger.engine) as reader:
        assert check(reader, ledger.calendar).differences == ()
    return True


def test_a_hold_is_set_aside_drained_and_given_back(funded: Ledger) -> None:
    found = ask(funded)
    assert (found.decision.klass, found.decision.hold_gpu_ms) == ("allocated", 8 * GPU_HOUR)
    assert standing(funded) == (8, 0, 92)
    funded.append(told(NOW_S + 60, started()))
    assert standing(funded, NOW_S + 60) == (8, 0, 92)
    assert standing(funded, NOW_S + 60 + HOUR // 2) == (4, 4, 92)
    assert standing(funded, NOW_S + 60 + HOUR) == (0, 8, 92)
    assert standing(funded, NOW_S + 60 + 2 * HOUR) == (0, 16, 84)
    funded.append(told(NOW_S + 60 + HOUR // 4, ended()))
    assert standing(funded, NOW_S + 3 * HOUR) == (0, 2, 98)
    assert is_sound(funded)


def test_charges_beyond_the_hold_come_from_the_budget(funded: Ledger) -> None:
    ask(funded)
    funded.append(told(NOW_S, started()), told(NOW_S + 3 * HOUR, ended()))
    assert funded.rows(
        "SELECT code, debit_pot, credit_pot, (amount / 3600000000)::int FROM ledger.postings"
        " WHERE commodity = 'gpu_ms_weighted' AND workload = 'w1' ORDER BY seq, n"
    ) == [
        ("hold", "budget", "held", 8),
        ("charge", "budget", "spent", 16),
        ("charge", "held", "spent", 8),
    ]
    assert standing(funded, NOW_S + 4 * HOUR) == (0, 24, 76)


def test_a_hold_that_nobody_used_counts_until_it_expires(funded: Ledger) -> None:
    expires_at = ask(funded).decision.expires_at
    assert expires_at == NOON + dt.timedelta(minutes=15)
    assert standing(funded, NOW_S + 899) == (8, 0, 92)
    assert standing(funded, NOW_S + 900) == (0, 0, 100)
    funded.append(told(NOW_S + 900, started()))
    assert standing(funded, NOW_S + 900 + HOUR) == (0, 8, 92)


def test_a_workload_that_is_over_before_it_starts_gives_its_hold_back(funded: Ledger) -> None:
    ask(funded)
    funded.append(told(NOW_S + 10, ended(run=None)))
    assert standing(funded, NOW_S + 10) == (0, 0, 100)
    assert is_sound(funded)


def test_asked_again_the_answer_is_the_same_until_it_expires(funded: Ledger) -> None:
    first, again = ask(funded), ask(funded)
    assert (again.decision, again.seq, first.repeated, again.repeated) == (
        first.decision,
        first.seq,
        False,
        True,
    )
    later(funded, 900)
    assert ask(funded).seq != first.seq
    assert standing(funded, NOW_S + 900) == (8, 0, 92)
    assert is_sound(funded)


def stands(ledger: Ledger, workload: str = "w1") -> Admission | None:
    """Return the answer that a snapshot finds, of the ledger's moment."""
    now_s = seconds(ledger.clock.now())
    with reading(ledger.engine) as reader:
        return answer_that_stands(reader, CLUSTER, workload, terms(reader, CLUSTER, now_s), now_s)


def test_an_answer_that_stands_is_read_without_a_lock_and_is_the_one_that_is_repeated(funded: Ledger) -> None:
    assert stands(funded) is None
    first = ask(funded)
    with writing(funded.engine) as writer:
        lock_book(writer, CLUSTER)
        assert stands(funded) == replace(first, repeated=True)
    assert stands(funded) == ask(funded)
    later(funded, 900)
    assert stands(funded) is None


def test_nothing_stands_of_another_submission_of_what_runs_or_under_policy_data_that_is_new(
    funded: Ledger,
) -> None:
    ask(funded)
    later(funded, 60)
    card = PolicyChanged(policy="rate_card", weights={"H100": 2000}, reason="test", by="test")
    funded.append(told(NOW_S, card))
    assert stands(funded) is None
    assert ask(funded).repeated
    assert stands(funded) is not None
    funded.append(told(NOW_S + 60, submitted(minimum_runtime_s=HOUR, gpus_milli=4000)))
    assert stands(funded) is None
    funded.append(told(NOW_S + 70, started()))
    with pytest.raises(Refused, match="runs already"):
        stands(funded)
    with pytest.raises(NotFound, match="was not submitted"):
        stands(funded, "w2")


def test_fifty_who_ask_at_once_get_one_answer(funded: Ledger) -> None:
    with ThreadPoolExecutor(50) as threads:
        found = list(threads.map(lambda _: ask(funded), range(50)))
    assert len({f.seq for f in found}) == 1
    assert sum(not f.repeated for f in found) == 1
    assert standing(funded) == (8, 0, 92)


def test_of_many_who_ask_a_hard_account_no_more_are_protected_than_it_can_pay(funded: Ledger) -> None:
    hard(funded)
    names = [f"v{number}" for number in range(20)]
    funded.append(*(told(NOW_S, submitted(name, minimum_runtime_s=HOUR)) for name in names))
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda name: ask(funded, name), names))
    assert [f.decision.klass for f in found].count("allocated") == 12
    assert standing(funded) == (96, 0, 4)


def test_a_soft_account_goes_over_its_budget(funded: Ledger) -> None:
    funded.append(*(told(NOW_S, submitted(f"v{n}", minimum_runtime_s=HOUR)) for n in range(13)))
    assert {ask(funded, f"v{n}").decision.klass for n in range(13)} == {"allocated"}
    assert standing(funded) == (104, 0, -4)


def test_a_refused_protection_says_who_binds_and_what_is_left(funded: Ledger) -> None:
    hard(funded, "org")
    limit = msgspec.structs.replace(granted("org", PERIOD, 5 * GPU_HOUR), limit=True)
    funded.append(told(0, limit))
    decision = ask(funded).decision
    assert (decision.klass, decision.hold_gpu_ms) == ("unallocated", 0)
    assert decision.reason == "org is hard and has 5.000 GPU-hours left in 2026-12; 8.000 are needed"
    funded.append(told(NOW_S, started()), told(NOW_S + HOUR, ended()))
    assert standing(funded, NOW_S + HOUR) == (0, 0, 5)
    assert funded.balance("org/vision", PERIOD).unallocated_gpu_ms == 8 * GPU_HOUR


def test_share_0_and_minimum_runtime_0_run_unallocated(funded: Ledger) -> None:
    funded.append(told(NOW_S, submitted("free", minimum_runtime_s=0)))
    assert ask(funded, "free").decision.klass == "unallocated"
    order(funded, ShareSet(account="org/vision", share=0, reason="t", by="t"))
    decision = ask(funded).decision
    assert (decision.klass, decision.reason) == (
        "unallocated", "org/vision has share 0, so nothing below it is funded",
    )  # fmt: skip


def test_protection_goes_on_after_a_requeue_and_starts_afresh_after_a_preemption(funded: Ledger) -> None:
    ask(funded)
    half = NOW_S + HOUR // 2
    funded.append(
        told(NOW_S, started()),
        told(half, Requeued(cluster=CLUSTER, workload="w1", run="r1", reason="user")),
    )
    later(funded, HOUR // 2)
    assert (ask(funded).decision.attempt, ask(funded).decision.hold_gpu_ms) == (2, 4 * GPU_HOUR)
    funded.append(
        told(half, started(run="r2", attempt=2)),
        told(half + 60, Preempted(cluster=CLUSTER, workload="w1", run="r2", reason="fair-share")),
    )
    assert (ask(funded).decision.attempt, ask(funded).decision.hold_gpu_ms) == (3, 8 * GPU_HOUR)
    assert is_sound(funded)


def test_a_hold_over_a_periods_edge_is_split(ledger: Ledger) -> None:
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/vision")))
    eve = at("2026-12-31T23:30:00Z")
    ledger.clock = FixedClock(dt.datetime.fromtimestamp(eve, dt.UTC))
    ledger.append(
        told(0, granted("org/vision", PERIOD, 100 * GPU_HOUR)), told(eve, submitted(minimum_runtime_s=HOUR))
    )
    ask(ledger)
    assert standing(ledger, eve) == (4, 0, 96)
    assert standing(ledger, eve, "2027-01") == (4, 0, -4)
    hard(ledger)
    ledger.append(told(eve, submitted("w2", minimum_runtime_s=HOUR)))
    assert "org/vision is hard and has -4.000 GPU-hours left in 2027-01" in ask(ledger, "w2").decision.reason
    # What January's opening would grant counts: 8 GPUs for a month.
    ledger.append(told(0, registered("h1", 8)))
    ledger.append(told(eve, submitted("w3", minimum_runtime_s=HOUR)))
    assert ask(ledger, "w3").decision.klass == "allocated"
    assert is_sound(ledger)


def test_a_run_that_grows_within_its_protection_holds_more(funded: Ledger) -> None:
    ask(funded)
    half = NOW_S + HOUR // 2
    resized = Resized(cluster=CLUSTER, workload="w1", run="r1", gpus_milli=16_000, hosts=["h1", "h2"])
    funded.append(told(NOW_S, started()), told(half, resized))
    assert standing(funded, half) == (8, 4, 88)
    funded.append(told(half + HOUR // 4, ended()))
    assert standing(funded, NOW_S + HOUR) == (0, 8, 92)
    assert is_sound(funded)


def test_what_was_not_submitted_runs_or_is_over_is_refused(funded: Ledger) -> None:
    with pytest.raises(NotFound, match="'w9' was not submitted"):
        ask(funded, "w9")
    funded.append(told(NOW_S, started()))
    with pytest.raises(Refused, match="runs already"):
        ask(funded)
    funded.append(told(NOW_S + 60, ended()))
    with pytest.raises(Refused, match="is over"):
        ask(funded)


def test_a_changed_submission_is_decided_anew(funded: Ledger) -> None:
    first = ask(funded)
    funded.append(told(NOW_S + 1, submitted(minimum_runtime_s=HOUR, gpus_milli=16_000)))
    again = ask(funded)
    assert (again.repeated, again.decision.hold_gpu_ms) == (False, 16 * GPU_HOUR)
    assert again.seq != first.seq
    assert standing(funded, NOW_S + 1) == (16, 0, 84)


def test_protection_starts_afresh_when_the_host_failed(funded: Ledger) -> None:
    ask(funded)
    requeued = Requeued(cluster=CLUSTER, workload="w1", run="r1", reason="NODE_FAIL")
    funded.append(told(NOW_S, started()), told(NOW_S + HOUR // 2, requeued))
    later(funded, HOUR // 2)
    assert ask(funded).decision.hold_gpu_ms == 8 * GPU_HOUR


def test_used_up_protection_of_a_hard_account_still_needs_a_slice(funded: Ledger) -> None:
    ask(funded)
    requeued = Requeued(cluster=CLUSTER, workload="w1", run="r1", reason="user")
    funded.append(told(NOW_S, started()), told(NOW_S + HOUR, requeued))
    later(funded, HOUR)
    hard(funded)
    assert ask(funded).decision.hold_gpu_ms == 2 * GPU_HOUR


def test_the_limit_above_binds_in_a_period_that_is_still_to_open(ledger: Ledger) -> None:
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/vision")))
    hard(ledger, "org")
    limit = msgspec.structs.replace(granted("org", PERIOD, 5 * GPU_HOUR), limit=True)
    ledger.append(
        told(0, registered("h1", 8)), told(0, limit), told(NOW_S, submitted(minimum_runtime_s=HOUR))
    )
    assert "org is hard and has 5.000 GPU-hours left" in ask(ledger).decision.reason


def test_a_lot_that_lapsed_since_the_tick_is_not_promised(ledger: Ledger) -> None:
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/vision")))
    hard(ledger)
    lapsing = msgspec.structs.replace(
        granted("org/vision", PERIOD, 100 * GPU_HOUR), expires_at=NOON.replace(hour=0)
    )
    ledger.append(told(0, lapsing), told(NOW_S, submitted(minimum_runtime_s=HOUR)))
    assert ask(ledger).decision.klass == "unallocated"
    assert is_sound(ledger)


def test_a_decision_long_after_the_start_does_not_decide_it(funded: Ledger) -> None:
    late = DecisionMade(
        cluster=CLUSTER, workload="w1", attempt=1, klass="unallocated", account="org/vision", gpus_milli=8000,
        hold_gpu_ms=0, reason="late",
    )  # fmt: skip
    funded.append(told(NOW_S, started()), told(NOW_S + 301, late))
    assert funded.rows("SELECT class FROM ledger.segments WHERE until_seq IS NULL") == [("allocated",)]


def test_a_workload_that_is_submitted_anew_is_held_for_anew(funded: Ledger) -> None:
    funded.append(told(NOW_S - 50, submitted("w7", minimum_runtime_s=HOUR, version=3)))
    funded.append(told(NOW_S - 20, ended("w7", run=None)))
    funded.append(told(NOW_S - 10, submitted("w7", minimum_runtime_s=HOUR, version=3)))
    assert ask(funded, "w7").decision.hold_gpu_ms == 8 * GPU_HOUR
    assert standing(funded)[0] == 8


def test_it_is_decided_by_the_rate_card_of_the_moment(funded: Ledger) -> None:
    hard(funded)
    order(funded, PolicyChanged(policy="rate_card", weights={"H100": 50_000}))
    funded.append(told(NOW_S, submitted("w7", gpu_model="H100", minimum_runtime_s=HOUR)))
    assert ask(funded, "w7").decision.klass == "unallocated"


def test_no_longer_is_protected_than_the_cap_that_is_set(funded: Ledger) -> None:
    funded.append(told(NOW_S, submitted("w-day", minimum_runtime_s=24 * HOUR)))
    assert ask(funded, "w-day").decision.hold_s == 8 * HOUR
    order(funded, PolicyChanged(policy="settings", settings={"protection_cap_s": 1800}, on_cluster=CLUSTER))
    assert ask(funded).decision.hold_s == 1800
    assert ask(funded, "w-day").decision.hold_s == 8 * HOUR, "what was decided stands"
    assert is_sound(funded)
