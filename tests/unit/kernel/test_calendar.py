"""Days and months where clocks jump, worked by hand."""

import datetime as dt

import pytest

from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import Refused


def at(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp())


def lengths(timezone: str, start: str, end: str) -> dict[str, int]:
    slices = Calendar(timezone).slices(at(start), at(end))
    return {str(piece.day): piece.end_s - piece.start_s for piece in slices}


def test_an_interval_over_midnight_is_cut_there() -> None:
    assert lengths("UTC", "2017-10-31T22:30:00Z", "2017-11-01T03:15:00Z") == {
        "2017-10-31": 5_400,
        "2017-11-01": 11_700,
    }


def test_the_same_interval_lies_in_one_day_further_west() -> None:
    slices = lengths("America/Los_Angeles", "2017-10-31T22:30:00Z", "2017-11-01T03:15:00Z")
    assert slices == {"2017-10-31": 17_100}


@pytest.mark.parametrize(
    ("timezone", "day", "hours"),
    [
        ("UTC", "2017-03-26", 24),
        ("Europe/Berlin", "2017-03-26", 23),
        ("Europe/Berlin", "2017-10-29", 25),
        ("America/Los_Angeles", "2017-11-05", 25),
        ("Asia/Kathmandu", "2017-10-29", 24),
        ("Australia/Lord_Howe", "2017-04-02", 24.5),
        ("Pacific/Apia", "2011-12-30", 0),  # the zone skipped it
        ("America/Sao_Paulo", "2017-10-15", 23),  # has no midnight: it begins at one o'clock
    ],
)
def test_a_day_is_as_long_as_the_zone_lived_it(timezone: str, day: str, hours: float) -> None:
    calendar, date = Calendar(timezone), dt.date.fromisoformat(day)
    length_s = calendar.day_start_s(date + dt.timedelta(days=1)) - calendar.day_start_s(date)
    assert length_s == hours * 3600


def test_a_day_that_the_zone_skipped_has_no_slice() -> None:
    slices = lengths("Pacific/Apia", "2011-12-29T00:00:00-10:00", "2012-01-01T00:00:00+14:00")
    assert slices == {"2011-12-29": 86_400, "2011-12-31": 86_400}


def test_an_hour_lived_twice_over_midnight_belongs_to_the_new_day_and_is_counted_once() -> None:
    # St. John's went back at 00:01 to 23:01 of the day before, at 02:31 UTC.
    start, end = "2010-11-07T02:40:00Z", "2010-11-08T04:30:00Z"
    assert Calendar("America/St_Johns").day_of(at(start)) == dt.date(2010, 11, 7)
    slices = lengths("America/St_Johns", start, end)
    assert slices == {"2010-11-07": at("2010-11-08T03:30:00Z") - at(start), "2010-11-08": 3_600}


def test_an_empty_interval_has_no_slices() -> None:
    assert list(Calendar().slices(100, 100)) == []
    assert list(Calendar().slices(100, 50)) == []


@pytest.mark.parametrize(
    ("timezone", "period", "hours"),
    [
        ("UTC", "2017-02", 28 * 24),
        ("UTC", "2016-02", 29 * 24),
        ("Europe/Berlin", "2017-03", 31 * 24 - 1),
        ("Europe/Berlin", "2017-10", 31 * 24 + 1),
        ("Europe/Berlin", "2017-12", 31 * 24),
    ],
)
def test_a_month_is_cut_in_the_zone(timezone: str, period: str, hours: int) -> None:
    start_s, end_s = Calendar(timezone).period_bounds_s(period)
    assert end_s - start_s == hours * 3600


def test_a_month_begins_at_local_midnight() -> None:
    assert Calendar("Asia/Kathmandu").period_bounds_s("2017-10")[0] == at("2017-09-30T18:15:00Z")


@pytest.mark.parametrize("period", ["2017", "2017-1", "2017-13", "17-10", "2017-10-01", "", "٢٠١٧-10"])
def test_a_period_that_is_no_month_is_refused(period: str) -> None:
    with pytest.raises(Refused, match="YYYY-MM"):
        Calendar().period_bounds_s(period)


@pytest.mark.parametrize("period", ["9999-12", "2101-02", "1969-11", "0000-01"])
def test_a_period_beyond_the_ledgers_time_is_refused(period: str) -> None:
    with pytest.raises(Refused, match="outside the years 1970 to 2100"):
        Calendar().period_bounds_s(period)


def test_periods_between_are_those_that_the_interval_touches() -> None:
    calendar = Calendar()
    touched = calendar.periods_between(at("2017-10-31T23:59:59Z"), at("2018-01-01T00:00:00Z"))
    assert touched == ["2017-10", "2017-11", "2017-12"]
    assert calendar.periods_between(5, 5) == []
    assert calendar.period_of(dt.date(2017, 10, 9)) == "2017-10"


@pytest.mark.parametrize("timezone", ["Mars/Base", "", "../etc/passwd"])
def test_a_zone_that_nobody_knows_is_refused_at_once(timezone: str) -> None:
    with pytest.raises(Refused, match="not known"):
        Calendar(timezone)
