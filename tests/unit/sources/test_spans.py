"""Submission, start and end in three columns, and what a row tells besides."""

import pytest

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.spans import Span, compare, span, told_seconds
from gpuledger.sources.values import LocalTimes

UTC = LocalTimes(None)
ROW = {
    "submit_time": "1970-01-01 00:00:10",
    "start_time": "1970-01-01 00:00:15",
    "end_time": "1970-01-01 00:01:15",
}


def test_a_job_that_ran() -> None:
    held, odd = span(UTC, ROW)
    assert (held, odd) == (Span(10, 15, 75), [])
    assert (held.ran_s, held.waited_s) == (60, 5)


def test_a_job_that_never_ran() -> None:
    held, odd = span(UTC, {**ROW, "start_time": "NaT"})
    assert (held, odd) == (Span(10, None, 75), [])
    assert (held.ran_s, held.waited_s) == (0, 0)


def test_what_is_odd_about_each_time_is_told() -> None:
    pacific = LocalTimes("America/Los_Angeles")
    row = {
        "submit_time": "2017-11-05 01:30:00",
        "start_time": "2017-11-05 01:31:00",
        "end_time": "2017-11-05 01:32:00",
    }
    assert [code for code, _ in span(pacific, row)[1]] == ["ambiguous-time"] * 3


def test_a_start_before_the_submission_is_told() -> None:
    held, odd = span(UTC, {**ROW, "start_time": "1970-01-01 00:00:05"})
    assert (held.waited_s, [code for code, _ in odd]) == (-5, ["start-before-submit"])


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"end_time": "1970-01-01 00:00:14"}, "start_time"),
        ({"start_time": "", "end_time": "1970-01-01 00:00:09"}, "submit_time"),
    ],
)
def test_an_end_before_what_came_first_is_no_span(changes: dict[str, str], field: str) -> None:
    with pytest.raises(BadRecord, match=f"is before {field}") as caught:
        span(UTC, {**ROW, **changes})
    assert caught.value.code == "end-before-start"


@pytest.mark.parametrize(
    ("value", "code"),
    [("60", None), ("60.0", None), ("", None), ("None", None), ("61", "x-y-differs"), ("a", "x-y-differs")],
)
def test_a_sum_is_compared(value: str, code: str | None) -> None:
    odd = compare("x_y", value, 60)
    assert (odd and odd[0]) == code


def test_a_sum_that_cannot_be_read_is_none() -> None:
    assert told_seconds("x", "7.9") == (7, None)
    assert told_seconds("x", "") == (None, None)
    told, odd = told_seconds("x", "many")
    assert told is None
    assert odd is not None
    assert "it is not booked" in odd[1]
