"""What holds of the layers: every installed GPU-second is in exactly one state (law 9), or nothing is said."""

from typing import TYPE_CHECKING

from gpuledger_pipelines.expectations.shape import Law, day_rows, no_rows, shape
from gpuledger_pipelines.gate import Subject, in_place
from gpuledger_pipelines.partitions import days_touched

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

BUCKET_KEY = ("cluster", "bucket_at")
HOUR_KEY = ("cluster", "hour_at")
DAY_KEY = ("cluster", "day")
STATES = (
    "lost_gpu_ms", "allocated_gpu_ms", "unallocated_gpu_ms", "overhead_gpu_ms", "unhealthy_gpu_ms",
    "maintenance_gpu_ms", "reserved_gpu_ms", "free_gpu_ms", "unknown_gpu_ms",
)  # fmt: skip
OCCUPIED = ("allocated_gpu_ms", "unallocated_gpu_ms")
PARTITION = ("installed_gpu_ms", "unhealthy_occupied_gpu_ms", "residual_gpu_ms", *STATES)
IMPACT = ("owed_gpu_ms", "delivered_gpu_ms", "hourly_met_gpu_ms")
SAMPLES = ("sampled_gpu_ms", "used_gpu_ms")
AMOUNTS = (*PARTITION, *IMPACT, *SAMPLES)
ALWAYS_KNOWN = (*OCCUPIED, "delivered_gpu_ms", *SAMPLES)


def needs_inventory(amounts: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the amounts that nobody knows without an inventory."""
    return tuple(name for name in amounts if name not in ALWAYS_KNOWN)


_USED_BY_BUCKET = """
    SELECT bucket_at, class, gpu_ms FROM warehouse.usage_bucket
    WHERE cluster = :cluster AND bucket_at >= to_timestamp(:from_s) AND bucket_at < to_timestamp(:to_s)
"""

_AGAINST_USAGE = f"""
    SELECT coalesce(g.bucket_at, u.bucket_at) AS bucket_at, g.allocated_gpu_ms, u.allocated AS used_allocated_gpu_ms,
           g.unallocated_gpu_ms, u.unallocated AS used_unallocated_gpu_ms
    FROM batch AS g
    FULL JOIN (
        SELECT bucket_at, coalesce(sum(gpu_ms) FILTER (WHERE class = 'allocated'), 0) AS allocated,
               coalesce(sum(gpu_ms) FILTER (WHERE class = 'unallocated'), 0) AS unallocated
        FROM ({_USED_BY_BUCKET}) AS used GROUP BY 1
    ) AS u ON g.bucket_at = u.bucket_at
    WHERE (coalesce(g.allocated_gpu_ms, 0), coalesce(g.unallocated_gpu_ms, 0))
          IS DISTINCT FROM (coalesce(u.allocated, 0)::bigint, coalesce(u.unallocated, 0)::bigint)
"""

# The inventory's GPUs over the window, from its first whole quarter of an hour on, by arithmetic of its own.
_AGAINST_INVENTORY = """
    SELECT installed_gpu_ms, inventory_gpu_ms
    FROM (SELECT coalesce(sum(installed_gpu_ms), 0) AS installed_gpu_ms FROM batch) AS b
    CROSS JOIN (
        SELECT coalesce(sum(gpus * 1000 * greatest(0,
                   least(coalesce(floor(extract(epoch FROM to_at))::bigint, :now_s), :to_s, :now_s)
                   - greatest(floor(extract(epoch FROM from_at))::bigint, :from_s, since_s))), 0) AS inventory_gpu_ms
        FROM ledger_read.hosts
        CROSS JOIN (SELECT ceil(extract(epoch FROM min(from_at)) / 900)::bigint * 900 AS since_s
                    FROM ledger_read.hosts WHERE cluster = :cluster) AS begun
        WHERE cluster = :cluster
    ) AS i
    WHERE installed_gpu_ms <> inventory_gpu_ms
"""


def _sums(names: tuple[str, ...]) -> str:
    return ", ".join(f"sum({name})::bigint AS {name}" for name in names)


def _differ(whole: str) -> str:
    """A row of a sum that is missing, or is not ``b``: in every state where it is known, else in what runs held."""
    told = ", ".join(f"{whole}.{name}" for name in PARTITION)
    summed = ", ".join(
        f"b.{name}" if name in OCCUPIED else f"CASE WHEN {whole}.reason IS NULL THEN b.{name} END"
        for name in PARTITION
    )
    return f"{whole}.cluster IS NULL OR ({told}) IS DISTINCT FROM ({summed})"


_AGAINST_BUCKETS = f"""
    SELECT coalesce(h.hour_at, b.hour_at) AS hour_at, h.installed_gpu_ms, b.installed_gpu_ms AS buckets_gpu_ms
    FROM batch AS h
    FULL JOIN (
        SELECT date_bin('1 hour', bucket_at, timestamptz '1970-01-01 00:00:00+00') AS hour_at, {_sums(PARTITION)}
        FROM warehouse.gpu_bucket
        WHERE cluster = :cluster AND bucket_at >= to_timestamp(:from_s) AND bucket_at < to_timestamp(:to_s)
        GROUP BY 1
    ) AS b ON h.hour_at = b.hour_at
    WHERE {_differ("h")}
"""


def gpu_bucket(subject: Subject) -> "list[Expectation]":
    """Return the suite of ``gpu_bucket``."""
    return [
        *_partition(BUCKET_KEY, PARTITION),
        no_rows(
            "allocated and unallocated are the usage of the bucket",
            in_place(_AGAINST_USAGE, subject),
            law=Law.CONSERVATION,
        ),
        no_rows(
            "installed is what the inventory says, to the second",
            in_place(_AGAINST_INVENTORY, subject),
            law=Law.DROPPED,
        ),
        no_rows(
            "a bucket begins on a quarter of an hour, and not after the run's present",
            in_place(
                "SELECT bucket_at FROM batch"
                " WHERE extract(epoch FROM bucket_at)::bigint % 900 <> 0 OR bucket_at >= to_timestamp(:now_s)",
                subject,
            ),
        ),
    ]


def gpu_hour(subject: Subject) -> "list[Expectation]":
    """Return the suite of ``gpu_hour``."""
    return [
        *_partition(HOUR_KEY, PARTITION),
        no_rows(
            "an hour is the sum of its buckets in every state",
            in_place(_AGAINST_BUCKETS, subject),
            law=Law.CONSERVATION,
        ),
    ]


def layer_metrics_hour(subject: Subject) -> "list[Expectation]":
    """Return the suite of ``layer_metrics_hour``."""
    same = ", ".join(PARTITION)
    return [
        *_partition(HOUR_KEY, AMOUNTS),
        _met_is_part_of_both("hour_at"),
        no_rows(
            "the states are those of the hour",
            in_place(
                f"""
                SELECT hour_at, {same} FROM warehouse.gpu_hour
                WHERE cluster = :cluster AND hour_at >= to_timestamp(:from_s) AND hour_at < to_timestamp(:to_s)
                EXCEPT SELECT hour_at, {same} FROM batch
                """,
                subject,
            ),
            law=Law.CONSERVATION,
        ),
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
            law=Law.CONSERVATION,
        ),
    ]


def layer_metrics_day(subject: Subject) -> "list[Expectation]":
    """Return the suite of ``layer_metrics_day``."""
    return [
        *_partition(DAY_KEY, AMOUNTS),
        _met_is_part_of_both("day"),
        no_rows(
            "days sum to the usage between their edges", _days_against_usage(subject), law=Law.CONSERVATION
        ),
        no_rows(
            "a day is the sum of its buckets in every state",
            _days_against_buckets(subject),
            law=Law.CONSERVATION,
        ),
    ]


def _days_against_usage(subject: Subject) -> str:
    """Compare the sum over the restated days with the buckets from the first day's start to the last one's end."""
    edges = days_touched(subject.calendar, subject.span)
    return in_place(
        f"""
        SELECT days_gpu_ms, buckets_gpu_ms
        FROM (SELECT coalesce(sum(allocated_gpu_ms + unallocated_gpu_ms), 0) AS days_gpu_ms FROM batch) AS d
        CROSS JOIN (
            SELECT coalesce(sum(gpu_ms), 0) AS buckets_gpu_ms FROM warehouse.usage_bucket
            WHERE cluster = :cluster AND bucket_at >= to_timestamp({edges["starts"][0]})
              AND bucket_at < to_timestamp({edges["ends"][-1]})
        ) AS b
        WHERE days_gpu_ms <> buckets_gpu_ms
        """,
        subject,
    )


def _days_against_buckets(subject: Subject) -> str:
    """Each day is the sum of its buckets: in every state where a day is known, else in what runs held."""
    days = day_rows(days_touched(subject.calendar, subject.span))
    return in_place(
        f"""
        SELECT b.day, d.installed_gpu_ms, b.installed_gpu_ms AS buckets_gpu_ms
        FROM (
            SELECT day, {_sums(PARTITION)}
            FROM (VALUES {days}) AS edge (day, start_at, end_at)
            JOIN warehouse.gpu_bucket ON cluster = :cluster AND bucket_at >= start_at AND bucket_at < end_at
            GROUP BY 1
        ) AS b
        LEFT JOIN batch AS d ON d.day = b.day
        WHERE {_differ("d")}
        """,
        subject,
    )


def _partition(key: tuple[str, str], amounts: tuple[str, ...]) -> "list[Expectation]":
    at = key[1]
    states = " + ".join(STATES)
    unknown = needs_inventory(amounts)
    return [
        *shape((*key, *amounts, "reason"), key=key, amounts=amounts, nullable=(*unknown, "reason")),
        no_rows(
            "the states sum to what was installed, and the residual is 0",
            f"SELECT {at}, installed_gpu_ms, {states} AS states_gpu_ms, residual_gpu_ms FROM batch"
            f" WHERE residual_gpu_ms <> 0 OR {states} <> installed_gpu_ms",
            law=Law.PARTITION,
        ),
        no_rows(
            "no more is occupied than is installed",
            f"SELECT {at}, allocated_gpu_ms + unallocated_gpu_ms AS occupied_gpu_ms, installed_gpu_ms"
            " FROM batch WHERE allocated_gpu_ms + unallocated_gpu_ms > installed_gpu_ms",
            law=Law.PARTITION,
        ),
        no_rows(
            "what needs an inventory is missing exactly where a reason says so",
            f"SELECT {at}, reason FROM batch"
            f" WHERE num_nulls({', '.join(unknown)})"
            f" <> CASE WHEN reason IS NULL THEN 0 ELSE {len(unknown)} END",
            law=Law.UNKNOWN,
        ),
        no_rows(
            "what is unhealthy and occupied is a part of what is occupied",
            f"SELECT {at}, unhealthy_occupied_gpu_ms, allocated_gpu_ms + unallocated_gpu_ms AS occupied_gpu_ms"
            " FROM batch WHERE unhealthy_occupied_gpu_ms > allocated_gpu_ms + unallocated_gpu_ms",
            law=Law.PARTITION,
        ),
    ]


def _met_is_part_of_both(at: str) -> "Expectation":
    return no_rows(
        "what was met hour by hour is at most what was owed and what was delivered",
        f"SELECT {at}, hourly_met_gpu_ms, owed_gpu_ms, delivered_gpu_ms FROM batch"
        " WHERE hourly_met_gpu_ms > least(owed_gpu_ms, delivered_gpu_ms)",
    )
