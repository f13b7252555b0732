"""The digest of a week: which one, of whom, in which words."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.kernel.calendar import Calendar
from gpuledger.notify.digests import HOUR, Week, by_node, digest_text, last_week, rows_of
from gpuledger.notify.payloads import DigestRow, DigestWaits, WeeklyDigest

HOURS = 3_600_000
W48 = Week("2026-W48", dt.date(2026, 11, 23), dt.date(2026, 11, 30))
W49 = Week("2026-W49", dt.date(2026, 11, 30), dt.date(2026, 12, 7))


@pytest.mark.parametrize(
    ("now", "timezone", "week"),
    [
        ("2026-12-07T06:59:59Z", "UTC", W48),
        ("2026-12-07T07:00:00Z", "UTC", W49),
        ("2026-12-13T23:59:59Z", "UTC", W49),
        ("2026-12-06T23:00:00Z", "Asia/Taipei", W49),
        ("2026-12-07T12:00:00Z", "America/New_York", W49),
        ("2026-12-07T11:59:59Z", "America/New_York", W48),
    ],
)
def test_a_week_is_told_of_from_monday_morning_on(now: str, timezone: str, week: Week) -> None:
    assert last_week(Calendar(timezone), dt.datetime.fromisoformat(now)) == week


@given(st.integers(0, 10 * 366 * 24 * 60))
def test_weeks_follow_each_other_without_gaps(minutes: int) -> None:
    now = dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(minutes=minutes)
    week, next_one = last_week(Calendar(), now), last_week(Calendar(), now + dt.timedelta(days=7))
    assert week.end == next_one.monday
    assert week.monday.weekday() == 0
    assert (
        dt.timedelta(0) <= now - dt.datetime.combine(week.end, dt.time(HOUR), dt.UTC) < dt.timedelta(days=7)
    )


def test_the_first_days_of_a_year_may_belong_to_the_last_week_of_the_one_before() -> None:
    assert last_week(Calendar(), dt.datetime(2027, 1, 4, 8, tzinfo=dt.UTC)).name == "2026-W53"


LEAVES = [
    ("org/a/x", {"given": 10, "spent": 4}),
    ("org/a/y", {"given": 5, "spent": 1}),
    ("org/b", {"given": 3, "spent": 0}),
    ("org/a/x", {"owed": 7, "delivered": 6}),
    ("org/b", {"owed": None, "delivered": 2}),
    ("org/a/y", {"idle": 2, "squatted": 1}),
]


def _row(account: str, *amounts: int | None) -> DigestRow:
    names = ("given", "spent", "owed", "delivered", "idle", "squatted")
    named = {f"{name}_gpu_ms": amount for name, amount in zip(names, amounts, strict=True)}
    return DigestRow(account=account, **named)  # type: ignore[arg-type]


def test_a_node_is_shown_with_what_is_right_below_it() -> None:
    sums = by_node(LEAVES)
    assert rows_of("org/a", sums) == [
        _row("org/a", 15, 5, 7, 6, 2, 1),
        _row("org/a/x", 10, 4, 7, 6, 0, 0),
        _row("org/a/y", 5, 1, 0, 0, 2, 1),
    ]
    assert [row.account for row in rows_of("org", sums)] == ["org", "org/a", "org/b"]
    assert rows_of(None, sums) == [_row("org", 18, 5, None, 8, 2, 1)]
    assert rows_of("org/gone", sums) == []


def _digest(account: str | None, *rows: DigestRow, waits: DigestWaits | None = None) -> WeeklyDigest:
    return WeeklyDigest(
        cluster="alpha", account=account, week=W49.name, from_day="2026-11-30", to_day="2026-12-07",
        period="2026-12", rows=list(rows), waits=waits,
    )  # fmt: skip


def test_the_verdict_comes_first_and_the_next_command_last() -> None:
    row = _row("org/a", 100 * HOURS, 40 * HOURS, 20 * HOURS, 19 * HOURS, 3 * HOURS, HOURS)
    waits = DigestWaits(request_count=9, started_count=8, p50_s=61, p90_s=None)
    told = digest_text(_digest("org/a", row, waits=waits))
    assert told.subject == "org/a on alpha: the week of 2026-11-30"
    assert told.lead == (
        "From 2026-11-30 to 2026-12-06, 19.0 GPU-hours were delivered, 95 % of the 20.0 that were owed. Of the budget"
        " of 2026-12, 40.0 of 100.0 GPU-hours are spent so far."
    )
    said = "8 of 9 requests started; half had started after 2 min, nine in ten after longer than is known yet"
    assert ("Waits", said) in told.facts
    assert told.tables[0].rows == (("org/a", "40.0 of 100.0", "20.0", "19.0", "3.0", "1.0"),)
    assert told.advice.startswith("gpuledger budget report --period 2026-12 --cluster alpha ")


def test_more_than_was_owed_is_all_of_it_and_what_is_not_known_is_not_divided_by() -> None:
    much = digest_text(_digest("org/a", _row("org/a", 1, 0, HOURS, 3 * HOURS, 0, 0))).lead
    assert "3.0 GPU-hours were delivered, 100 % of the 1.0 that were owed." in much
    unknown = digest_text(_digest("org/a", _row("org/a", 1, 0, None, HOURS, 0, 0)))
    assert "1.0 GPU-hours were delivered. Of the budget" in unknown.lead
    assert unknown.tables[0].rows[0][2] == "not known"


def test_the_organisation_is_the_sum_of_its_highest_accounts() -> None:
    rows = (_row("a", 2 * HOURS, HOURS, HOURS, HOURS, 0, 0), _row("b", HOURS, HOURS, 3 * HOURS, HOURS, 0, 0))
    told = digest_text(_digest(None, *rows))
    assert told.subject.startswith("All accounts on alpha")
    assert "2.0 GPU-hours were delivered, 50 % of the 4.0 that were owed" in told.lead
    assert "2.0 of 3.0 GPU-hours are spent" in told.lead
