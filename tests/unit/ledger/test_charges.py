"""Segments -> postings, worked by hand."""

import datetime as dt
from typing import Any

from msgspec.structs import replace

from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger.charges import (
    _INTO,
    CHARGE,
    CREDIT,
    HOLD,
    MINIMUM,
    PHYSICAL,
    ROLLOVER,
    WEIGHTED,
    Booking,
    Key,
    Posted,
    Pot,
    adjustments,
    desired,
    difference,
    grant,
    pots,
    transfer,
)
from gpuledger.ledger.credits import Credit
from gpuledger.ledger.holds import Hold
from gpuledger.ledger.segments import History, Segment

DAY = dt.date(1970, 1, 1)
KEY = Key(CHARGE, PHYSICAL, "org/a", "budget", "r1", DAY)
BOOKING = Booking(Calendar())


def segment(from_s: int, to_s: int | None, *, klass: str = "allocated", account: str = "org/a") -> Segment:
    return Segment("w", "r1", from_s, to_s, account, klass, "-", 8000, None, (), estimated=False)


def history(*segments: Segment, **more: Any) -> History:  # noqa: ANN401
    return History(segments=segments, waits=(), **more)


def test_each_day_of_a_segment_is_one_amount_in_each_commodity() -> None:
    tomorrow = DAY + dt.timedelta(days=1)
    assert desired(history(segment(86_000, 86_500)), Calendar()) == {
        Key(CHARGE, PHYSICAL, "org/a", "budget", "r1", DAY): 8000 * 400,
        Key(CHARGE, WEIGHTED, "org/a", "budget", "r1", DAY): 8000 * 400 * 1000,
        Key(CHARGE, PHYSICAL, "org/a", "budget", "r1", tomorrow): 8000 * 100,
        Key(CHARGE, WEIGHTED, "org/a", "budget", "r1", tomorrow): 8000 * 100 * 1000,
    }


def test_segments_of_one_run_and_day_add_up_and_classes_stay_apart() -> None:
    want = desired(history(segment(0, 10), segment(10, 30), segment(30, 31, klass="unallocated")), Calendar())
    physical = {(key.code, amount) for key, amount in want.items() if key.commodity == PHYSICAL}
    assert physical == {("charge", 8000 * 30), ("unallocated", 8000)}


def test_an_open_segment_is_not_charged_yet() -> None:
    assert desired(history(segment(0, None)), Calendar()) == {}


def test_the_month_of_a_day_is_the_period() -> None:
    (day,) = {key.day for key in desired(history(segment(2_678_400, 2_678_500)), Calendar())}
    assert pots(KEY._replace(day=day), BOOKING) == (
        Pot("budget", "org/a", "1970-02"),
        Pot("spent", "org/a", "1970-02"),
    )


def test_what_belongs_to_a_shut_period_is_booked_in_the_next_that_is_open() -> None:
    shut = Booking(Calendar(), frozenset({"1970-01", "1970-02"}))
    assert {pot.period for pot in pots(KEY, shut)} == {"1970-03"}


def test_an_open_segment_is_charged_up_to_the_tick_and_to_its_limit_at_most() -> None:
    capped = replace(segment(0, None), capped_s=50)
    for ticked_s, charged_s in ((0, 0), (30, 30), (90, 50)):
        want = desired(history(capped), Calendar(), ticked_s=ticked_s)
        assert sum(a for key, a in want.items() if key.commodity == PHYSICAL) == 8000 * charged_s


def hold(from_s: int, to_s: int, run: str | None = "r1", **keys: Any) -> Hold:  # noqa: ANN401
    return Hold("w", 1, from_s, to_s, "org/a", 8000, None, run, keys.get("expires_s"))


def weighted(want: dict[Key, int]) -> dict[tuple[str, str], int]:
    return {
        (key.code, key.pot): amount // 8_000_000 for key, amount in want.items() if key.commodity == WEIGHTED
    }


def test_what_a_hold_pays_for_comes_out_of_it_and_the_rest_from_the_budget() -> None:
    want = desired(history(segment(0, 100), holds=(hold(0, 60),)), Calendar())
    assert weighted(want) == {("charge", "held"): 60, ("charge", "budget"): 40, ("hold", "budget"): 60}


def test_a_run_that_goes_on_still_holds_what_it_has_not_drained() -> None:
    want = desired(history(segment(0, None), holds=(hold(0, 60),)), Calendar(), ticked_s=20)
    assert weighted(want) == {("charge", "held"): 20, ("charge", "budget"): 0, ("hold", "budget"): 60}


def test_a_hold_that_nobody_used_is_gone_when_the_tick_passes_its_expiry() -> None:
    waiting = history(holds=(hold(0, 60, None, expires_s=30),))
    assert weighted(desired(waiting, Calendar(), ticked_s=29)) == {("hold", "budget"): 60}
    assert desired(waiting, Calendar(), ticked_s=30) == {}


def test_time_that_was_not_charged_holds_nothing_and_drains_nothing() -> None:
    want = desired(history(segment(0, 100, klass="unallocated"), holds=(hold(0, 60),)), Calendar())
    assert weighted(want) == {("unallocated", "free"): 100}


def test_a_credit_takes_back_what_was_charged_and_gives_the_budget_as_much() -> None:
    want = desired(history(segment(0, 100), credits=(Credit("r1", "i1", 70, 100),)), Calendar())
    assert weighted(want) == {("charge", "budget"): 100, ("credit", "spent"): 30, ("credit", "issue"): 30}
    assert want[Key(CREDIT, PHYSICAL, "org/a", "spent", "r1", DAY)] == 8000 * 30


def test_what_is_released_is_a_hold_the_other_way() -> None:
    key = Key(HOLD, WEIGHTED, "org/a", "budget", "#1", DAY)
    (posting,) = difference({key: 3}, {key: Posted(10, 5)}, workload="w", reason="late", booking=BOOKING)
    assert (posting.code, posting.amount) == ("release", 7)
    assert (posting.debit.pot, posting.credit.pot) == ("held", "budget")


def test_what_rolls_over_enters_the_period_after_that_of_its_day() -> None:
    key = Key(ROLLOVER, WEIGHTED, "org/a", "expired", "", dt.date(1970, 1, 31))
    assert pots(key, BOOKING) == (Pot("expired", "org/a", "1970-01"), Pot("budget", "org/a", "1970-02"))
    late = Booking(Calendar(), frozenset({"1970-01", "1970-02"}))
    assert {pot.period for pot in pots(key, late)} == {"1970-03"}


def test_an_adjustment_moves_what_the_code_moves_and_is_marked() -> None:
    more, back = (adjustments("credit", "org/a", gpu_ms, DAY, BOOKING, 9) for gpu_ms in (5, -5))
    assert [(p.debit.pot, p.credit.pot, p.amount) for p in more] == [
        ("spent", "credited", 5000),
        ("issue", "budget", 5000),
    ]
    assert [(p.debit.pot, p.credit.pot) for p in back] == [("credited", "spent"), ("budget", "issue")]
    assert {(p.reason, p.reverses_seq, p.workload) for p in more + back} == {("adjustment", 9, None)}


def test_a_first_amount_is_posted_without_reason_or_reversal() -> None:
    (posting,) = difference({KEY: 70}, {}, workload="w", reason="late", booking=BOOKING)
    assert (posting.amount, posting.debit.pot, posting.credit.pot) == (70, "budget", "spent")
    assert (posting.reverses_seq, posting.reason) == (None, None)
    assert (posting.workload, posting.run, posting.day) == ("w", "r1", DAY)


def test_too_much_is_taken_back_by_a_posting_the_other_way_that_names_what_it_reverses() -> None:
    (posting,) = difference({KEY: 30}, {KEY: Posted(70, 5)}, workload="w", reason="late", booking=BOOKING)
    assert (posting.amount, posting.debit.pot, posting.credit.pot) == (40, "spent", "budget")
    assert (posting.reverses_seq, posting.reason) == (5, "late")


def test_too_little_is_topped_up_for_a_reason() -> None:
    (posting,) = difference({KEY: 70}, {KEY: Posted(30, 5)}, workload="w", reason="late", booking=BOOKING)
    assert (posting.amount, posting.credit.pot, posting.reverses_seq, posting.reason) == (
        40,
        "spent",
        None,
        "late",
    )


def test_what_should_not_stand_is_taken_back_whole() -> None:
    (posting,) = difference({}, {KEY: Posted(70, 5)}, workload="w", reason="late", booking=BOOKING)
    assert (posting.amount, posting.debit.pot) == (70, "spent")


def test_equal_amounts_need_no_posting() -> None:
    assert difference({KEY: 70}, {KEY: Posted(70, 5)}, workload="w", reason="", booking=BOOKING) == []
    assert difference({}, {KEY: Posted(0, 5)}, workload="w", reason="", booking=BOOKING) == []


def test_postings_come_in_one_order_whatever_the_order_of_the_amounts() -> None:
    keys = [KEY._replace(account=name) for name in ("c", "a", "b")]
    forward = difference(dict.fromkeys(keys, 5), {}, workload="w", reason="", booking=BOOKING)
    backward = difference(dict.fromkeys(reversed(keys), 5), {}, workload="w", reason="", booking=BOOKING)
    assert forward == backward
    assert [posting.credit.account for posting in forward] == ["a", "b", "c"]


def test_what_a_minimum_adds_is_a_grant_by_the_period_before() -> None:
    key = Key(MINIMUM, WEIGHTED, "org/a", "issue", "", dt.date(1970, 2, 1))
    (first,) = difference({key: 70}, {}, workload=None, reason="ledger.settled", booking=BOOKING)
    assert (first.code, first.debit, first.credit) == (
        "grant",
        Pot("issue", "~", "1970-01"),
        Pot("budget", "org/a", "1970-02"),
    )
    (back,) = difference({}, {key: Posted(70, 5)}, workload=None, reason="ledger.settled", booking=BOOKING)
    assert (back.code, back.debit, back.credit, back.reverses_seq) == ("grant", first.credit, first.debit, 5)
    assert {first.reason, back.reason} == {"ledger.settled"}


def test_the_debit_credit_table_is_that_of_the_design() -> None:
    assert {(code, debit, credit) for (code, debit), credit in _INTO.items()} == {
        ("grant", "issue", "budget"),
        ("hold", "budget", "held"),  # the other way it is a release
        ("charge", "held", "spent"),
        ("charge", "budget", "spent"),
        ("credit", "spent", "credited"),
        ("credit", "issue", "budget"),
        ("expiry", "budget", "expired"),
        ("rollover", "expired", "budget"),
        ("unallocated", "free", "unallocated"),
    }
    given = transfer("org/a", "org/b", 7, DAY, BOOKING)
    assert (given.code, given.debit.pot, given.credit.pot) == ("transfer", "budget", "budget")


def test_unallocated_use_comes_from_the_books_own_pot() -> None:
    assert pots(KEY._replace(code="unallocated", pot="free"), BOOKING) == (
        Pot("free", "~", "1970-01"),
        Pot("unallocated", "org/a", "1970-01"),
    )


def test_a_grant_goes_from_issue_to_budget_in_weighted_units() -> None:
    posting = grant("org/a", 7, DAY, BOOKING)
    assert (posting.code, posting.commodity, posting.amount) == ("grant", WEIGHTED, 7000)
    assert (posting.debit, posting.credit) == (
        Pot("issue", "~", "1970-01"),
        Pot("budget", "org/a", "1970-01"),
    )
