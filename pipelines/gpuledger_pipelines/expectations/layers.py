"""What holds of the layers: every installed GPU-second is in exactly one state (law 9), or nothing is said."""

import datetime as dt
from typing import TYPE_CHECKING

from gpuledger_pipelines.expectations.shape import no_rows, shape
from gpuledger_pipelines.gate import Subject, in_place

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

CAPACITY_KEY = ("cluster", "bucket_at")
CAPACITY = ("installed_gpu_ms", "unhealthy_gpu_ms", "unhealthy_occupied_gpu_ms", "maintenance_gpu_ms")
HOUR_KEY = ("cluster", "hour_at")
DAY_KEY = ("cluster", "day")
STATES = (
    "lost_gpu_ms", "allocated_gpu_ms", "unallocated_gpu_ms", "overhead_gpu_ms", "unhealthy_gpu_ms",
    "maintenance_gpu_ms", "reserved_gpu_ms", "free_gpu_ms", "unknown_gpu_ms",
)  # fmt: skip
OCCUPIED = ("allocated_gpu_ms", "unallocated_gpu_ms")
IMPACT = ("owed_gpu_ms", "delivered_gpu_ms", "hourly_met_gpu_ms")
SAMPLES = ("sampled_gpu_ms", "used_gpu_ms")
ALWAYS_KNOWN = (*OCCUPIED, "delivered_gpu_ms", *SAMPLES)
AMOUNTS = ("installed_gpu_ms", "unhealthy_occupied_gpu_ms", "residual_gpu_ms", *STATES, *IMPACT, *SAMPLES)
NEEDS_INVENTORY = tuple(name for name in AMOUNTS if name not in ALWAYS_KNOWN)


def capacity_bucket(_subject: Subject) -> "list[Expectation]":
    """Return the suite of ``capacity_bucket``."""
    return [
        *shape((*CAPACITY_KEY, *CAPACITY), key=CAPACITY_KEY, amounts=CAPACITY),
        no_rows(
            "unhealthy and maintenance are parts of installed",
            "SELECT * FROM batch WHERE unhealthy_gpu_ms + unhealthy_occupied_gpu_ms + maintenance_gpu_ms"
            " > installed_gpu_ms",
        ),
    ]


def layer_metrics_hour(subject: Subject) -> "list[Expectation]":
    """Return the suite of ``layer_metrics_hour``."""
    return [
        *_partition(HOUR_KEY),
        no_rows(
            "allocated and unallocated are the usage of the hour",
            in_place(
                """
                SELECT coalesce(l.hour_at, u.hour_at) AS hour_at,
                       l.allocated_gpu_ms + l.unallocated_gpu_ms AS occupied_gpu_ms, u.gpu_ms AS used_gpu_ms
                FROM batch AS l
                FULL JOIN (
                    SELECT hour_at, sum(gpu_ms) AS gpu_ms FROM warehouse.usage_hour
                    WHERE cluster = :cluster AND hour_at >= to_timestamp(:from_s) AND hour_at < to_timestamp(:to_s)
                    GROUP BY 1
                ) AS u ON l.hour_at = u.hour_at
                WHERE coalesce(l.allocated_gpu_ms + l.unallocated_gpu_ms, 0) <> coalesce(u.gpu_ms, 0)
                """,
                subject,
            ),
        ),
    ]


def layer_metrics_day(subject: Subject) -> "list[Expectation]":
    """Return the suite of ``layer_metrics_day``."""
    return [
        *_partition(DAY_KEY),
        no_rows("days sum to the buckets between their edges", _days_against_buckets(subject)),
    ]


def _days_against_buckets(subject: Subject) -> str:
    """Compare the sum over the restated days with the buckets from the first day's start to the last one's end."""
    days, span = subject.calendar, subject.span
    start_s = days.day_start_s(days.day_of(span.from_s))
    end_s = days.day_start_s(days.day_of(span.to_s - 1) + dt.timedelta(days=1))
    return in_place(
        f"""
        SELECT days_gpu_ms, buckets_gpu_ms
        FROM (SELECT coalesce(sum(allocated_gpu_ms + unallocated_gpu_ms), 0) AS days_gpu_ms FROM batch) AS d
        CROSS JOIN (
            SELECT coalesce(sum(gpu_ms), 0) AS buckets_gpu_ms FROM warehouse.usage_bucket
            WHERE cluster = :cluster AND bucket_at >= to_timestamp({start_s}) AND bucket_at < to_timestamp({end_s})
        ) AS b
        WHERE days_gpu_ms <> buckets_gpu_ms
        """,
        subject,
    )


def _partition(key: tuple[str, str]) -> "list[Expectation]":
    at = key[1]
    states = " + ".join(STATES)
    return [
        *shape((*key, *AMOUNTS, "reason"), key=key, amounts=AMOUNTS, nullable=(*NEEDS_INVENTORY, "reason")),
        no_rows(
            "the states sum to what was installed, and the residual is 0",
            f"SELECT {at}, installed_gpu_ms, {states} AS states_gpu_ms, residual_gpu_ms FROM batch"
            f" WHERE residual_gpu_ms <> 0 OR {states} <> installed_gpu_ms",
        ),
        no_rows(
            "no more is occupied than is installed",
            f"SELECT {at}, allocated_gpu_ms + unallocated_gpu_ms AS occupied_gpu_ms, installed_gpu_ms"
            " FROM batch WHERE allocated_gpu_ms + unallocated_gpu_ms > installed_gpu_ms",
        ),
        no_rows(
            "what needs an inventory is missing exactly where a reason says so",
            f"SELECT {at}, reason FROM batch"
            f" WHERE num_nulls({', '.join(NEEDS_INVENTORY)})"
            f" <> CASE WHEN reason IS NULL THEN 0 ELSE {len(NEEDS_INVENTORY)} END",
        ),
        no_rows(
            "what was met hour by hour is at most what was owed and what was delivered",
            f"SELECT {at}, hourly_met_gpu_ms, owed_gpu_ms, delivered_gpu_ms FROM batch"
            " WHERE hourly_met_gpu_ms > least(owed_gpu_ms, delivered_gpu_ms)",
        ),
    ]
