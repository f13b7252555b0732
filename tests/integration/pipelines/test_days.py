"""Days of the organisation's zone: offsets inside an hour, and days of 23 and 25 hours."""

import datetime as dt
from zoneinfo import ZoneInfo

import pytest
from tests.integration.pipelines.rows import DAY_S, HOUR_S, Database, Facts, Host, Segment
from tests.integration.pipelines.running import restate

from gpuledger_pipelines.partitions import Span


def midnight_s(day: dt.date, zone: str = "UTC") -> int:
    return int(dt.datetime.combine(day, dt.time(), ZoneInfo(zone)).timestamp())


def days(database: Database, zone: str, first: dt.date, count: int) -> dict[dt.date, dict[str, int]]:
    """One GPU of two is held all the time, over ``count`` UTC days from the first."""
    start_s = midnight_s(first)
    end_s = start_s + count * DAY_S
    facts = Facts(
        segments=[Segment("c/a", 1000, start_s - DAY_S, end_s + DAY_S)],
        hosts=[Host("h", 2, "healthy", start_s - 2 * DAY_S)],
        accounts=["c/a"],
        timezone=zone,
    )
    database.put(facts)
    restate(database.url, Span("c", start_s, end_s, end_s + 10 * DAY_S))
    return {row["day"]: row for row in database.table("layer_metrics_day")}


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Asia/Kolkata", dt.date(2024, 3, 2), 24),  # +5:30
        ("Asia/Kathmandu", dt.date(2024, 3, 2), 24),  # +5:45
        ("Europe/Berlin", dt.date(2024, 3, 31), 23),
        ("Europe/Berlin", dt.date(2024, 10, 27), 25),
        ("Australia/Lord_Howe", dt.date(2024, 4, 7), 24.5),  # moves by half an hour
        ("America/Havana", dt.date(2024, 11, 3), 25),  # has its midnight twice
        ("America/Santiago", dt.date(2024, 9, 8), 23),  # has no midnight
    ],
)
def test_a_day_is_as_long_as_its_zone_says(database: Database, zone: str, day: dt.date, hours: float) -> None:
    found = days(database, zone, day - dt.timedelta(days=1), 3)[day]
    assert found["installed_gpu_ms"] == 2000 * HOUR_S * hours
    assert found["allocated_gpu_ms"] == found["free_gpu_ms"] == 1000 * HOUR_S * hours
    assert found["residual_gpu_ms"] == 0


def test_owed_of_a_day_is_that_of_the_hours_which_begin_in_it(database: Database) -> None:
    """In Kolkata a day begins at 18:30 UTC: the hour of 18:00 belongs to the day before as a whole."""
    day = dt.date(2024, 3, 2)
    found = days(database, "Asia/Kolkata", day - dt.timedelta(days=1), 3)
    assert found[day]["owed_gpu_ms"] == found[day]["delivered_gpu_ms"] == 24 * 1000 * HOUR_S
    edge = found[day - dt.timedelta(days=1)]
    # UTC days begin at 05:30 there: 18.5 hours are in the range, of which 19 begin.
    assert edge["allocated_gpu_ms"] == 18.5 * 1000 * HOUR_S
    assert edge["delivered_gpu_ms"] == 19 * 1000 * HOUR_S


def test_the_days_sum_to_the_range(database: Database) -> None:
    found = days(database, "Asia/Kolkata", dt.date(2024, 3, 1), 3)
    assert len(found) == 4
    assert sum(row["allocated_gpu_ms"] for row in found.values()) == 3 * 24 * 1000 * HOUR_S
