import datetime as dt

import dagster as dg
import pytest

from gpuledger.kernel.calendar import Calendar
from gpuledger_pipelines.defs.layers.assets import days_touched
from gpuledger_pipelines.partitions import Span

DAY_S = 86_400
NEW_YEAR_S = int(dt.datetime(2024, 1, 1, tzinfo=dt.UTC).timestamp())


def test_a_utc_day_is_one_day_in_utc() -> None:
    days = days_touched(Calendar("UTC"), Span("c", NEW_YEAR_S, NEW_YEAR_S + DAY_S, 0))
    assert days == {
        "days": [dt.date(2024, 1, 1)],
        "starts": [NEW_YEAR_S],
        "ends": [NEW_YEAR_S + DAY_S],
    }


def test_elsewhere_it_touches_two_and_both_are_whole() -> None:
    days = days_touched(Calendar("Asia/Kathmandu"), Span("c", NEW_YEAR_S, NEW_YEAR_S + DAY_S, 0))
    offset_s = 5 * 3600 + 45 * 60
    assert days["days"] == [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]
    assert days["starts"] == [NEW_YEAR_S - offset_s, NEW_YEAR_S - offset_s + DAY_S]
    assert days["ends"] == [NEW_YEAR_S - offset_s + DAY_S, NEW_YEAR_S - offset_s + 2 * DAY_S]


def test_a_zone_whose_days_begin_inside_a_quarter_of_an_hour_is_refused() -> None:
    """Monrovia was 44 minutes and 30 seconds behind until 1972."""
    with pytest.raises(dg.Failure, match="quarter of an hour"):
        days_touched(Calendar("Africa/Monrovia"), Span("c", 0, DAY_S, 0))
