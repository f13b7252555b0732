"""Updates in a book: who is charged from when on, what the policy reads, and that their order changes nothing."""

from itertools import permutations
from typing import Any

from tests.integration.ledger.books import (
    CLUSTER,
    HOUR,
    Ledger,
    at,
    empty,
    ended,
    run_of,
    started,
    submitted,
    told,
)
from tests.integration.ledger.test_admission import NOW_S, ask, funded, hard, is_sound, later, order
from tests.integration.ledger.test_closing import DECEMBER, close

from gpuledger.database.engine import reading, writing
from gpuledger.events.budget import AccountCreated, PolicyChanged
from gpuledger.events.closing import LedgerTicked
from gpuledger.events.workload import Requeued, Updated
from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger import state, story
from gpuledger.ledger.landing import land
from gpuledger.ledger.ownership import within

__all__ = ["funded"]

SUM = """
    SELECT account, pot, sum(amount)::bigint / 3600000000 FROM (
        SELECT commodity, credit_account AS account, credit_pot AS pot, amount FROM ledger.postings
        UNION ALL
        SELECT commodity, debit_account, debit_pot, -amount FROM ledger.postings) AS legs
    WHERE commodity = 'gpu_ms_weighted' AND pot IN ('held', 'spent')
    GROUP BY 1, 2 HAVING sum(amount) <> 0 ORDER BY 1, 2
"""


def updated(name: str = "w1", **keys: Any) -> Updated:  # noqa: ANN401
    return Updated(cluster=CLUSTER, workload=name, **keys)


def test_a_run_is_charged_to_another_account_from_the_moment_on_and_its_hold_follows(funded: Ledger) -> None:
    ask(funded)
    funded.append(told(NOW_S, started()))
    assert funded.rows(SUM) == [("org/vision", "held", 8)]
    funded.append(told(NOW_S + HOUR // 4, updated(account="org/speech")))
    assert funded.rows(SUM) == [("org/speech", "held", 6), ("org/vision", "spent", 2)]
    funded.append(told(NOW_S + 2 * HOUR, ended()))
    assert funded.rows(SUM) == [("org/speech", "spent", 14), ("org/vision", "spent", 2)]
    assert is_sound(funded)
    with reading(funded.engine) as reader:
        owners = [within(reader, CLUSTER, ["w1"], account) for account in ("org", "org/speech", "org/vision")]
    assert owners == [{"w1"}, {"w1"}, set()]


def test_a_late_move_takes_back_what_was_charged_since_the_moment(ledger: Ledger) -> None:
    ledger.append(*run_of(0, 4 * HOUR))
    ledger.append(told(HOUR, updated(account="org/speech")))
    assert ledger.used() == {"org/speech": 8000 * 3 * HOUR, "org/vision": 8000 * HOUR}
    assert is_sound(ledger)


def test_what_moved_in_a_closed_period_is_booked_in_the_open_one(ledger: Ledger) -> None:
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/vision", "org/speech")))
    start_s = at("2026-11-10T00:00:00Z")
    ledger.append(*run_of(start_s, start_s + 4 * HOUR))
    close(ledger)
    ledger.append(told(start_s + HOUR, updated(account="org/speech")))
    rows = ledger.rows(
        "SELECT credit_account, debit_account, credit_period, effective_on::text FROM ledger.postings"
        " WHERE reason = 'workload.updated' OR (credit_account = 'org/speech' AND code = 'charge')"
    )
    assert {period for _, _, period, _ in rows} == {DECEMBER}
    assert {day for *_, day in rows} == {"2026-11-10"}
    assert is_sound(ledger)


def test_updates_come_in_any_order_before_their_submission_too(ledger: Ledger) -> None:
    facts = [
        told(0, submitted()), told(60, started()), told(120, updated(account="org/speech", priority=5)),
        told(180, updated(account="org/music", time_limit_s=HOUR)), told(240, ended()),
    ]  # fmt: skip
    digests = set()
    for turn in list(permutations(facts))[::13]:
        for event in turn:
            ledger.append(event)
        assert ledger.append(*turn[:2]).repeated == 2
        assert ledger.used() == dict.fromkeys(("org/vision", "org/speech", "org/music"), 8000 * 60)
        digests.add(ledger.digest())
        empty(ledger)
    assert len(digests) == 1


def test_a_limit_that_is_extended_lets_an_open_run_be_charged_on(ledger: Ledger) -> None:
    ledger.append(told(0, submitted(time_limit_s=HOUR)), told(0, started()))
    ledger.append(told(3 * HOUR, LedgerTicked(cluster=CLUSTER)))
    assert ledger.total() == 8000 * HOUR
    ledger.append(told(HOUR // 2, updated(time_limit_s=2 * HOUR)))
    assert ledger.total() == 8000 * 2 * HOUR
    with reading(ledger.engine) as reader:
        limits = [story.declared_limits(reader, CLUSTER, at_s) for at_s in (HOUR // 2 - 1, HOUR // 2)]
    assert limits == [{"w1": HOUR}, {"w1": 2 * HOUR}]
    assert is_sound(ledger)


def test_the_policy_reads_what_is_asked_for_by_now_and_who_waited_keeps_the_place(ledger: Ledger) -> None:
    ledger.append(
        told(0, submitted(priority=1)), told(100, updated(priority=7, account="org/speech", gpus_milli=1000))
    )
    with reading(ledger.engine) as reader:
        (before,), (after,) = state.pending(reader, CLUSTER, 99), state.pending(reader, CLUSTER, 100)
    assert (before.account, before.gpus_milli, before.priority, before.eligible_s) == (
        "org/vision",
        8000,
        1,
        0,
    )
    assert (after.account, after.gpus_milli, after.priority) == ("org/speech", 1000, 7)
    assert (after.submitted_s, after.eligible_s) == (0, 0)


def test_a_run_keeps_the_protection_that_it_was_started_with_and_has_the_priority_of_now(
    ledger: Ledger,
) -> None:
    ledger.append(told(0, submitted(minimum_runtime_s=60, priority=1)), told(10, started()))
    ledger.append(told(20, updated(minimum_runtime_s=HOUR, priority=7)))
    with reading(ledger.engine) as reader:
        (before,), (run,) = state.running(reader, CLUSTER, 15), state.running(reader, CLUSTER, 30)
    assert (before.minimum_runtime_s, before.priority) == (60, 1)
    assert (run.minimum_runtime_s, run.priority) == (60, 7)
    ledger.append(told(40, Requeued(cluster=CLUSTER, workload="w1", run="r1", reason="x")))
    with reading(ledger.engine) as reader:
        (waits,) = state.pending(reader, CLUSTER, 50)
    assert waits.minimum_runtime_s == HOUR


def test_an_admission_holds_what_is_asked_for_by_now_and_decides_anew_for_another_account(
    funded: Ledger,
) -> None:
    first = ask(funded)
    funded.append(told(NOW_S + 10, updated(gpus_milli=1000, account="org/speech")))
    later(funded, 20)
    again = ask(funded)
    assert not again.repeated
    assert (first.decision.account, again.decision.account) == ("org/vision", "org/speech")
    assert again.decision.gpus_milli == 1000
    assert funded.rows(SUM) == [("org/speech", "held", 1)], "nothing is held any more at whom it left"
    assert is_sound(funded)


def test_a_run_that_is_moved_to_a_hard_account_without_budget_goes_on_unallocated(funded: Ledger) -> None:
    hard(funded, "org/speech")
    ask(funded)
    funded.append(told(NOW_S, started()), told(NOW_S + 60, updated(account="org/speech")))
    later(funded, 120)
    with writing(funded.engine) as writer:
        landed = land(writer, CLUSTER, clock=funded.clock, calendar=funded.calendar, slice_s=60)
    assert landed.landed == ["w1/r1"]
    assert is_sound(funded)


def test_a_run_that_is_moved_on_a_day_of_25_hours_at_the_edge_of_a_period_is_cut_there_to_the_second(
    ledger: Ledger,
) -> None:
    """The last Sunday of October in Berlin, and the month that ends at 23:00 UTC six days later."""
    ledger.calendar = Calendar("Europe/Berlin")
    order(ledger, PolicyChanged(policy="organisation", timezone="Europe/Berlin", period="month", by="ada"))
    begin_s, turn_s, edge_s = (at(f"2026-10-{moment}:00:00Z") for moment in ("24T22", "25T01", "31T23"))
    ledger.append(told(begin_s, submitted()), told(begin_s, started()))
    ledger.append(told(begin_s + 2 * HOUR, LedgerTicked(cluster=CLUSTER)))
    ledger.append(told(turn_s, updated(account="org/speech")))
    ledger.append(told(edge_s, updated(account="org/music")), told(edge_s + 60, ended()))
    net = ledger.net()
    day = {account: sum(v for (_, a, _, d), v in net.items() if (a, d) == (account, "2026-10-25"))
           for account in ("org/vision", "org/speech")}  # fmt: skip
    assert day == {"org/vision": 8000 * 3 * HOUR, "org/speech": 8000 * 22 * HOUR}
    assert {(a, d): v for (_, a, _, d), v in net.items() if d >= "2026-10-31"} == {
        ("org/speech", "2026-10-31"): 8000 * 24 * HOUR, ("org/music", "2026-11-01"): 8000 * 60,
    }  # fmt: skip
    assert is_sound(ledger)


def test_a_limit_that_ran_out_between_two_ticks_and_was_extended_then_is_charged_to_who_paid_when(
    ledger: Ledger,
) -> None:
    def charged() -> dict[str, int]:
        return {account: gpu_ms for (_, account, _, _), gpu_ms in ledger.net().items()}

    ledger.append(told(0, submitted(time_limit_s=HOUR)), told(0, started()))
    ledger.append(told(HOUR, LedgerTicked(cluster=CLUSTER)))
    ledger.append(told(90 * 60, updated(account="org/speech")))
    ledger.append(told(2 * HOUR, LedgerTicked(cluster=CLUSTER)))
    assert charged() == {"org/vision": 8000 * HOUR}, "nobody is charged beyond the limit"
    ledger.append(told(100 * 60, updated(time_limit_s=3 * HOUR)))
    assert charged() == {"org/vision": 8000 * 90 * 60, "org/speech": 8000 * 30 * 60}
    ledger.append(told(5 * HOUR, LedgerTicked(cluster=CLUSTER)))
    assert charged() == {"org/vision": 8000 * 90 * 60, "org/speech": 8000 * 90 * 60}
    assert is_sound(ledger)
