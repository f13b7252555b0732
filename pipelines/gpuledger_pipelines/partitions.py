"""How the warehouse is partitioned: by day (UTC) and cluster; and what one run is asked to restate."""

import datetime as dt
from dataclasses import dataclass
from typing import TypedDict

import dagster as dg

from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant, seconds

CLUSTERS = "cluster"
"""Name of the dynamic partitions: the clusters that were ever rolled up."""

DAY_S = 86_400
BUCKET_S = 900
HOUR_S = 3_600
NOW_TAG = "gpuledger/now"
"""Run tag: the run's present in seconds since the epoch. Without it the moment the run was created counts."""

RANGE_START_TAG = "dagster/asset_partition_range_start"
RANGE_END_TAG = "dagster/asset_partition_range_end"
PARTITION_TAG = "dagster/partition"

# Some traces count their seconds from the epoch. Dimensions are ordered by name: "philly|2017-10-01".
DAY_AND_CLUSTER = dg.MultiPartitionsDefinition(
    {
        "cluster": dg.DynamicPartitionsDefinition(name=CLUSTERS),
        "day": dg.DailyPartitionsDefinition(start_date="1970-01-01", end_offset=1),
    }
)


@dataclass(frozen=True, slots=True)
class Span:
    """What a run restates: whole UTC days of one cluster, up to the run's present.

    Args:
        cluster: The cluster, which is also the book.
        from_s: Start of the first day, seconds since the epoch.
        to_s: End of the last day (exclusive).
        now_s: The run's present: open runs count up to here, and nothing beyond.
    """

    cluster: str
    from_s: int
    to_s: int
    now_s: int

    @property
    def binds(self) -> dict[str, object]:
        """The parameters that every statement takes."""
        return {"cluster": self.cluster, "from_s": self.from_s, "to_s": self.to_s, "now_s": self.now_s}


def partition_key(cluster: str, day: dt.date) -> str:
    """Return the key of one day of one cluster."""
    return f"{cluster}|{day.isoformat()}"


def range_tags(cluster: str, first: dt.date, last: dt.date) -> dict[str, str]:
    """Return the tags that make one run cover the days from first to last, both included."""
    return {RANGE_START_TAG: partition_key(cluster, first), RANGE_END_TAG: partition_key(cluster, last)}


def utc_days(from_s: int, to_s: int) -> tuple[dt.date, dt.date]:
    """Return the first and last UTC day that the half-open interval touches."""
    return instant(from_s).date(), instant(to_s - 1).date()


class DaysTouched(TypedDict):
    """The organisation's days that a span touches, and from when to when each is, in seconds since the epoch."""

    first_day: dt.date
    last_day: dt.date
    days: list[dt.date]
    starts: list[int]
    ends: list[int]


def days_touched(calendar: Calendar, span: Span) -> DaysTouched:
    """Return the organisation's days that the span touches, each from its first instant to its last.

    Raises:
        dagster.Failure: When a day's edge is inside a bucket, which no zone in use today has.
    """
    first, last = calendar.day_of(span.from_s), calendar.day_of(span.to_s - 1)
    days = [first + dt.timedelta(days=n) for n in range((last - first).days + 1)]
    edges = [calendar.day_start_s(day) for day in [*days, last + dt.timedelta(days=1)]]
    if odd := [edge_s for edge_s in edges if edge_s % BUCKET_S]:
        raise dg.Failure(
            f"days of {calendar.timezone} do not begin on a quarter of an hour: {odd[0]} s",
            allow_retries=False,
        )
    return {"first_day": first, "last_day": last, "days": days, "starts": edges[:-1], "ends": edges[1:]}


def span_of(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext) -> Span:
    """Return what the run was asked to restate.

    Raises:
        dagster.Failure: When the run names no partition, or a range over several clusters.
    """
    tags = context.run.tags
    first, last = (tags.get(name) or tags.get(PARTITION_TAG, "") for name in (RANGE_START_TAG, RANGE_END_TAG))
    (cluster, separator, start), (other, _, end) = first.rpartition("|"), last.rpartition("|")
    if not separator or cluster != other:
        raise dg.Failure(
            f"a run restates days of one cluster, not {first or 'nothing'!r} to {last or 'nothing'!r}",
            metadata={"hint": "choose days of one cluster; the backfill of several makes one run for each"},
            allow_retries=False,
        )
    return Span(cluster, _midnight_s(start), _midnight_s(end) + DAY_S, _now_s(context))


def _midnight_s(day: str) -> int:
    return seconds(dt.datetime.combine(dt.date.fromisoformat(day), dt.time(), dt.UTC))


def _now_s(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext) -> int:
    given = context.run.tags.get(NOW_TAG)
    if given is not None:
        return int(given)
    record = context.instance.get_run_record_by_id(context.run.run_id)
    assert record is not None  # noqa: S101 - a run that executes was recorded first
    return seconds(record.create_timestamp)
