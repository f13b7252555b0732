"""What holds of usage: every bucket is whole, and together they are what the ledger's segments say."""

from typing import TYPE_CHECKING

from gpuledger_pipelines.expectations.shape import Law, no_rows, one_of, shape
from gpuledger_pipelines.gate import Subject, in_place

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

CLASSES = ("allocated", "unallocated")
AMOUNTS = ("gpu_ms", "sampled_gpu_ms", "used_gpu_ms")
BUCKET_KEY = ("cluster", "bucket_at", "account", "class")
HOUR_KEY = ("cluster", "hour_at", "account", "class")

_AGAINST_SEGMENTS = """
    SELECT account, class, booked_gpu_ms, coalesce(segment_gpu_ms, 0) AS segment_gpu_ms
    FROM (SELECT account, class, sum(gpu_ms) AS booked_gpu_ms FROM batch GROUP BY 1, 2) AS booked
    FULL JOIN (
        SELECT account, class, sum(gpus_milli * (
                   least(coalesce(floor(extract(epoch FROM until_at))::bigint, :now_s), :to_s, :now_s)
                   - greatest(floor(extract(epoch FROM from_at))::bigint, :from_s))) AS segment_gpu_ms
        FROM ledger_read.segments
        WHERE cluster = :cluster AND gpus_milli > 0
          AND from_at < to_timestamp(least(:to_s, :now_s)) AND (until_at IS NULL OR until_at > to_timestamp(:from_s))
        GROUP BY 1, 2
    ) AS held USING (account, class)
    WHERE coalesce(booked_gpu_ms, 0) <> coalesce(segment_gpu_ms, 0)
"""

_AGAINST_BUCKETS = """
    SELECT coalesce(h.hour_at, b.hour_at) AS hour_at, coalesce(h.account, b.account) AS account,
           coalesce(h.class, b.class) AS class, h.gpu_ms AS hour_gpu_ms, b.gpu_ms AS buckets_gpu_ms
    FROM batch AS h
    FULL JOIN (
        SELECT date_bin('1 hour', bucket_at, timestamptz '1970-01-01 00:00:00+00') AS hour_at, account, class,
               sum(gpu_ms) AS gpu_ms, sum(sampled_gpu_ms) AS sampled_gpu_ms, sum(used_gpu_ms) AS used_gpu_ms
        FROM warehouse.usage_bucket
        WHERE cluster = :cluster AND bucket_at >= to_timestamp(:from_s) AND bucket_at < to_timestamp(:to_s)
        GROUP BY 1, 2, 3
    ) AS b ON h.hour_at = b.hour_at AND h.account = b.account AND h.class = b.class
    WHERE (h.gpu_ms, h.sampled_gpu_ms, h.used_gpu_ms)
          IS DISTINCT FROM (b.gpu_ms::bigint, b.sampled_gpu_ms::bigint, b.used_gpu_ms::bigint)
"""


def usage_bucket(subject: Subject) -> "list[Expectation]":
    """Return the suite of ``usage_bucket``."""
    return [
        *shape((*BUCKET_KEY, *AMOUNTS), key=BUCKET_KEY, amounts=AMOUNTS),
        one_of("class", CLASSES),
        _used_is_part_of_sampled("bucket_at"),
        no_rows(
            "a bucket begins on a quarter of an hour, and not after the run's present",
            in_place(
                "SELECT bucket_at, account, class FROM batch"
                " WHERE extract(epoch FROM bucket_at)::bigint % 900 <> 0 OR bucket_at >= to_timestamp(:now_s)",
                subject,
            ),
        ),
        no_rows(
            "buckets sum to the segments of the ledger",
            in_place(_AGAINST_SEGMENTS, subject),
            law=Law.CONSERVATION,
        ),
    ]


def usage_hour(subject: Subject) -> "list[Expectation]":
    """Return the suite of ``usage_hour``."""
    return [
        *shape((*HOUR_KEY, *AMOUNTS), key=HOUR_KEY, amounts=AMOUNTS),
        one_of("class", CLASSES),
        _used_is_part_of_sampled("hour_at"),
        no_rows(
            "an hour is the sum of its buckets", in_place(_AGAINST_BUCKETS, subject), law=Law.CONSERVATION
        ),
    ]


def _used_is_part_of_sampled(at: str) -> "Expectation":
    return no_rows(
        "used is at most sampled",
        f"SELECT {at}, account, class, used_gpu_ms, sampled_gpu_ms FROM batch"
        " WHERE used_gpu_ms > sampled_gpu_ms",
        law=Law.UNKNOWN,
    )
