import datetime as dt
from types import SimpleNamespace
from typing import cast

import dagster as dg
import pytest

from gpuledger.kernel.calendar import Calendar
from gpuledger_pipelines.partitions import (
    DAY_AND_CLUSTER,
    NOW_TAG,
    PARTITION_TAG,
    Span,
    days_touched,
    partition_key,
    range_tags,
    span_of,
    utc_days,
)  # fmt: skip

DAY_S = 86_400
NEW_YEAR_S = int(dt.datetime(2024, 1, 1, tzinfo=dt.UTC).timestamp())


def context(tags: dict[str, str], created: dt.datetime | None = None) -> dg.AssetExecutionContext:
    record = SimpleNamespace(create_timestamp=created)
    instance = SimpleNamespace(get_run_record_by_id=lambda _run_id: record)
    return cast(
        "dg.AssetExecutionContext",
        SimpleNamespace(run=SimpleNamespace(tags=tags, run_id="r"), instance=instance),
    )


def test_a_range_covers_both_its_ends() -> None:
    tags = {**range_tags("philly", dt.date(1970, 1, 2), dt.date(1970, 1, 4)), NOW_TAG: "77"}
    assert span_of(context(tags)) == Span("philly", DAY_S, 4 * DAY_S, 77)


def test_one_partition_is_one_day() -> None:
    key = partition_key("a|b", dt.date(1970, 1, 2))  # only the last bar separates
    assert span_of(context({PARTITION_TAG: key, NOW_TAG: "0"})) == Span("a|b", DAY_S, 2 * DAY_S, 0)


def test_without_a_present_of_its_own_a_run_has_the_moment_it_was_made() -> None:
    made = dt.datetime(1970, 1, 5, 0, 0, 1, 999_999, tzinfo=dt.UTC)
    key = partition_key("c", dt.date(1970, 1, 2))
    assert span_of(context({PARTITION_TAG: key}, made)).now_s == 4 * DAY_S + 1


@pytest.mark.parametrize(
    "tags",
    [
        {},
        {
            "dagster/asset_partition_range_start": "a|1970-01-02",
            "dagster/asset_partition_range_end": "b|1970-01-02",
        },
    ],
)
def test_a_run_without_days_or_over_two_clusters_is_refused(tags: dict[str, str]) -> None:
    with pytest.raises(dg.Failure, match="days of one cluster"):
        span_of(context(tags))


def test_our_keys_are_dagsters() -> None:
    key = DAY_AND_CLUSTER.get_partition_key_from_str(partition_key("philly", dt.date(2017, 10, 1)))
    assert key.keys_by_dimension == {"cluster": "philly", "day": "2017-10-01"}


def test_the_utc_days_of_an_interval() -> None:
    assert utc_days(DAY_S - 1, DAY_S + 1) == (dt.date(1970, 1, 1), dt.date(1970, 1, 2))
    assert utc_days(DAY_S, 2 * DAY_S) == (dt.date(1970, 1, 2), dt.date(1970, 1, 2))


def test_a_utc_day_is_one_day_in_utc() -> None:
    days = days_touched(Calendar("UTC"), Span("c", NEW_YEAR_S, NEW_YEAR_S + DAY_S, 0))
    assert days == {
        "first_day": dt.date(2024, 1, 1),
        "last_day": dt.date(2024, 1, 1),
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
