"""Laws of cutting time at day edges, in every zone there is (fault list 4 and 5)."""

import datetime as dt
import itertools
import zoneinfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.kernel.calendar import Calendar

ZONES = sorted(zoneinfo.available_timezones())
YEAR_S = 366 * 86_400
EDGES_S = (0, 4_133_980_800)

zones = st.sampled_from(ZONES)
starts = st.integers(*EDGES_S)
lengths = st.one_of(st.integers(0, 7_200), st.integers(0, 10 * 86_400), st.integers(0, YEAR_S))
many = settings(max_examples=5 * settings().max_examples, deadline=None)


@many
@given(zones, starts, lengths)
def test_slices_cover_the_interval_to_the_second_in_days_that_follow_each_other(
    zone: str, start_s: int, length_s: int
) -> None:
    slices = list(Calendar(zone).slices(start_s, start_s + length_s))
    assert sum(piece.end_s - piece.start_s for piece in slices) == length_s
    assert all(piece.end_s > piece.start_s for piece in slices)
    assert all(a.end_s == b.start_s and a.day < b.day for a, b in itertools.pairwise(slices))
    assert not slices or (slices[0].start_s, slices[-1].end_s) == (start_s, start_s + length_s)


@many
@given(zones, starts, lengths, lengths)
def test_splitting_an_interval_moves_no_second_to_another_day(
    zone: str, start_s: int, first_s: int, second_s: int
) -> None:
    calendar, middle_s, end_s = Calendar(zone), start_s + first_s, start_s + first_s + second_s
    whole = per_day(calendar, (start_s, end_s))
    assert per_day(calendar, (start_s, middle_s), (middle_s, end_s)) == whole


@many
@given(zones, starts, lengths)
def test_a_slice_lies_in_the_day_of_its_first_and_last_second(zone: str, start_s: int, length_s: int) -> None:
    calendar = Calendar(zone)
    for piece in calendar.slices(start_s, start_s + length_s):
        assert calendar.day_of(piece.start_s) == piece.day == calendar.day_of(piece.end_s - 1)


@many
@given(zones, starts)
def test_every_instant_lies_between_the_edges_of_its_day_and_of_its_period(zone: str, at_s: int) -> None:
    calendar = Calendar(zone)
    day = calendar.day_of(at_s)
    assert calendar.day_start_s(day) <= at_s < calendar.day_start_s(day + dt.timedelta(days=1))
    start_s, end_s = calendar.period_bounds_s(calendar.period_of(day))
    assert start_s <= at_s < end_s


@given(zones, starts, lengths)
def test_periods_between_chain_without_gap_and_hold_every_slice(
    zone: str, start_s: int, length_s: int
) -> None:
    calendar, end_s = Calendar(zone), min(start_s + length_s, EDGES_S[1])
    periods = calendar.periods_between(start_s, end_s)
    bounds = [calendar.period_bounds_s(period) for period in periods]
    assert all(a[1] == b[0] for a, b in itertools.pairwise(bounds))
    touched = {calendar.period_of(piece.day) for piece in calendar.slices(start_s, end_s)}
    assert touched == set(periods)


@pytest.mark.parametrize("year", [2010, 2026])
def test_the_days_of_a_year_are_as_many_seconds_as_the_year_in_every_zone(year: int) -> None:
    wrong = []
    for zone in ZONES:
        calendar = Calendar(zone)
        start_s, end_s = (
            calendar.day_start_s(dt.date(year, 1, 1)),
            calendar.day_start_s(dt.date(year + 1, 1, 1)),
        )
        covered = list(calendar.slices(start_s, end_s))
        if sum(piece.end_s - piece.start_s for piece in covered) != end_s - start_s:
            wrong.append(zone)
    assert wrong == []


def per_day(calendar: Calendar, *spans: tuple[int, int]) -> dict[dt.date, int]:
    found: dict[dt.date, int] = {}
    for start_s, end_s in spans:
        for piece in calendar.slices(start_s, end_s):
            found[piece.day] = found.get(piece.day, 0) + piece.end_s - piece.start_s
    return found
