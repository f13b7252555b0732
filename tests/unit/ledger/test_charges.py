"""Segments -> postings, worked by hand."""

import datetime as dt

from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger.charges import (
    CHARGE,
    PHYSICAL,
    WEIGHTED,
    Key,
    Posted,
    Pot,
    desired,
    difference,
    grant,
    pots,
)
from gpuledger.ledger.segments import Segment

DAY = dt.date(1970, 1, 1)
KEY = Key(CHARGE, PHYSICAL, "org/a", "r1", DAY, "1970-01")


def segment(from_s: int, to_s: int | None, *, klass: str = "allocated", account: str = "org/a") -> Segment:
    return Segment("w", "r1", from_s, to_s, account, klass, "-", 8000, None, (), estimated=False)


def test_each_day_of_a_segment_is_one_amount_in_each_commodity() -> None:
    tomorrow = DAY + dt.timedelta(days=1)
    assert desired([segment(86_000, 86_500)], Calendar()) == {
        Key(CHARGE, PHYSICAL, "org/a", "r1", DAY, "1970-01"): 8000 * 400,
        Key(CHARGE, WEIGHTED, "org/a", "r1", DAY, "1970-01"): 8000 * 400 * 1000,
        Key(CHARGE, PHYSICAL, "org/a", "r1", tomorrow, "1970-01"): 8000 * 100,
        Key(CHARGE, WEIGHTED, "org/a", "r1", tomorrow, "1970-01"): 8000 * 100 * 1000,
    }


def test_segments_of_one_run_and_day_add_up_and_classes_stay_apart() -> None:
    want = desired([segment(0, 10), segment(10, 30), segment(30, 31, klass="unallocated")], Calendar())
    physical = {(key.code, amount) for key, amount in want.items() if key.commodity == PHYSICAL}
    assert physical == {("charge", 8000 * 30), ("unallocated", 8000)}


def test_an_open_segment_is_not_charged_yet() -> None:
    assert desired([segment(0, None)], Calendar()) == {}


def test_the_month_of_a_day_is_the_period() -> None:
    (period,) = {key.period for key in desired([segment(2_678_400, 2_678_500)], Calendar())}
    assert period == "1970-02"


def test_a_first_amount_is_posted_without_reason_or_reversal() -> None:
    (posting,) = difference({KEY: 70}, {}, workload="w", reason="late")
    assert (posting.amount, posting.debit.pot, posting.credit.pot) == (70, "budget", "spent")
    assert (posting.reverses_seq, posting.reason) == (None, None)
    assert (posting.workload, posting.run, posting.day) == ("w", "r1", DAY)


def test_too_much_is_taken_back_by_a_posting_the_other_way_that_names_what_it_reverses() -> None:
    (posting,) = difference({KEY: 30}, {KEY: Posted(70, 5)}, workload="w", reason="late")
    assert (posting.amount, posting.debit.pot, posting.credit.pot) == (40, "spent", "budget")
    assert (posting.reverses_seq, posting.reason) == (5, "late")


def test_too_little_is_topped_up_for_a_reason() -> None:
    (posting,) = difference({KEY: 70}, {KEY: Posted(30, 5)}, workload="w", reason="late")
    assert (posting.amount, posting.credit.pot, posting.reverses_seq, posting.reason) == (
        40,
        "spent",
        None,
        "late",
    )


def test_what_should_not_stand_is_taken_back_whole() -> None:
    (posting,) = difference({}, {KEY: Posted(70, 5)}, workload="w", reason="late")
    assert (posting.amount, posting.debit.pot) == (70, "spent")


def test_equal_amounts_need_no_posting() -> None:
    assert difference({KEY: 70}, {KEY: Posted(70, 5)}, workload="w", reason="") == []
    assert difference({}, {KEY: Posted(0, 5)}, workload="w", reason="") == []


def test_postings_come_in_one_order_whatever_the_order_of_the_amounts() -> None:
    keys = [KEY._replace(account=name) for name in ("c", "a", "b")]
    forward = difference(dict.fromkeys(keys, 5), {}, workload="w", reason="")
    backward = difference(dict.fromkeys(reversed(keys), 5), {}, workload="w", reason="")
    assert forward == backward
    assert [posting.credit.account for posting in forward] == ["a", "b", "c"]


def test_unallocated_use_comes_from_the_books_own_pot() -> None:
    assert pots(KEY._replace(code="unallocated")) == (
        Pot("free", "~", "1970-01"),
        Pot("unallocated", "org/a", "1970-01"),
    )


def test_a_grant_goes_from_issue_to_budget_in_weighted_units() -> None:
    posting = grant("org/a", "1970-01", 7, DAY)
    assert (posting.code, posting.commodity, posting.amount) == ("grant", WEIGHTED, 7000)
    assert (posting.debit, posting.credit) == (
        Pot("issue", "~", "1970-01"),
        Pot("budget", "org/a", "1970-01"),
    )
