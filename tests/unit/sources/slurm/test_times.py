"""Times and durations as Slurm prints them."""

from functools import partial

import pytest

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.slurm.times import Span, duration, limit_seconds, read_time, span
from gpuledger.sources.values import LocalTimes

UTC = LocalTimes(None)
berlin = partial(read_time, LocalTimes("Europe/Berlin"))
BACK = 1_792_888_200
"""2026-10-25T00:30:00Z: clocks of Berlin show 02:30, and an hour later again."""


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("", 0),
        ("00:00:00", 0),
        ("00:00:09", 9),
        ("1-02:03:04", 93_784),
        ("7-00:00:00", 604_800),
        ("02:05.500", 125),
    ],
)
def test_a_duration(value: str, seconds: int) -> None:
    assert duration("Suspended", value) == seconds


@pytest.mark.parametrize("value", ["9", "-1:00", "1:2", "x", "٣:٣٣", "999999-00:00:00"])
def test_what_is_no_duration_is_refused(value: str) -> None:
    with pytest.raises(BadRecord, match="Suspended"):
        duration("Suspended", value)


def test_times_are_text_or_seconds() -> None:
    assert read_time(UTC, "Start", "2026-10-31T22:00:00")[0] == 1_793_484_000
    assert read_time(UTC, "Start", "1793484000")[0] == 1_793_484_000
    assert read_time(UTC, "Start", "0")[0] is None
    assert read_time(UTC, "Start", "")[0] is None
    with pytest.raises(BadRecord):
        read_time(UTC, "Start", "22:00")


def test_of_times_that_came_twice_those_that_fit_the_length_are_meant() -> None:
    shown = "2026-10-25T02:30:00"
    assert span(berlin, shown, shown, 3600) == Span(BACK, BACK + 3600)
    assert span(berlin, shown, "2026-10-25T03:30:00", 3600) == Span(BACK + 3600, BACK + 7200)
    assert span(berlin, "2026-10-25T01:30:00", shown, 7200) == Span(BACK - 3600, BACK + 3600)


def test_without_a_length_the_first_is_taken_and_reported() -> None:
    shown = "2026-10-25T02:30:00"
    found = span(berlin, shown, shown, None)
    assert (found.start_s, found.end_s) == (BACK, BACK)
    assert {code for code, _ in found.oddities} == {"ambiguous-time"}
    assert [code for code, _ in span(berlin, shown, "", 60).oddities] == ["ambiguous-time"]
    assert span(berlin, shown, "2026-10-25T04:30:00", 99_999).oddities


@pytest.mark.parametrize(
    ("raw", "shown", "seconds"),
    [
        ("480", "", 28_800),
        ("", "08:00:00", 28_800),
        ("", "7-00:00:00", 604_800),
        ("", "UNLIMITED", None),
        ("", "Partition_Limit", None),
        ("", "", None),
        ("0", "", None),
        ("999999999999999", "", None),
    ],
)
def test_a_limit(raw: str, shown: str, seconds: int | None) -> None:
    assert limit_seconds(raw, shown) == seconds
