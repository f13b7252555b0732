"""Submission, start and end in three columns, and what a row tells besides."""

import pytest

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.columns import columns_of
from gpuledger.sources.jobs import Teams
from gpuledger.sources.spans import Span, Told, compare, job_row, job_rows, span, told_seconds
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


COLUMNS = ("job_id", "user", "vc", "gpu_num", "state", "submit_time", "start_time", "end_time", "duration")
USUAL = b"1,u,team,2,COMPLETED,1971-01-01 00:00:10,1971-01-01 00:00:15,1971-01-01 00:01:15,60"
TOLD = Told(
    ("duration",),
    lambda ran_s, waited_s, gpus: [map(str, ran_s)],
    lambda told, held, gpus: [("odd", f"{told[0]} is not {held.ran_s}")],
)


def by_column(*rows: bytes) -> list[object]:
    columns = columns_of(COLUMNS, b"\n".join(rows))
    assert columns is not None
    teams = Teams()
    teams.account("vc", "c", "team")
    return list(job_rows(("s", "c"), teams, "vc", UTC, TOLD, columns))


def test_rows_that_are_as_usual_are_jobs_by_column() -> None:
    values = dict(zip(COLUMNS, USUAL.decode().split(","), strict=True))
    job = job_row(("s", "c"), Teams(), "vc", UTC, values).job
    assert by_column(USUAL, USUAL.replace(b",60", b",61")) == [(job, ()), (job, [("odd", "61 is not 60")])]


@pytest.mark.parametrize(
    ("was", "is_now"),
    [
        (b"1,u", b",u"),
        (b",u,", b",,"),
        (b"team", b"other"),
        (b",2,", b",-2,"),
        (b"COMPLETED", b"LOST"),
        (b"00:00:10", b"00:00:16"),
        (b"00:00:15", b"00:01:16"),
        (b"1971-01-01 00:00:15", b""),
    ],
    ids=repr,
)
def test_other_rows_are_left_to_who_reads_them_one_by_one(was: bytes, is_now: bytes) -> None:
    assert by_column(USUAL.replace(was, is_now), USUAL)[0] is None
