"""What holds of owed: nobody is owed more than entitlement or demand, and entitlements are the capacity."""

from typing import TYPE_CHECKING

from gpuledger_pipelines.expectations.shape import Law, no_rows, shape
from gpuledger_pipelines.gate import Subject, in_place

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

KEY = ("cluster", "hour_at", "account")
AMOUNTS = ("entitlement_gpu_ms", "demand_gpu_ms", "owed_gpu_ms", "delivered_gpu_ms")

_AGAINST_CAPACITY = """
    SELECT hour_at, entitlement_gpu_ms, healthy_gpu_ms
    FROM (SELECT hour_at, sum(entitlement_gpu_ms) AS entitlement_gpu_ms FROM batch GROUP BY 1) AS entitled
    LEFT JOIN (
        SELECT date_bin('1 hour', bucket_at, timestamptz '1970-01-01 00:00:00+00') AS hour_at,
               sum(installed_gpu_ms - unhealthy_gpu_ms - unhealthy_occupied_gpu_ms - maintenance_gpu_ms)
                   AS healthy_gpu_ms
        FROM warehouse.gpu_bucket
        WHERE cluster = :cluster AND bucket_at >= to_timestamp(:from_s) AND bucket_at < to_timestamp(:to_s)
        GROUP BY 1
    ) AS healthy USING (hour_at)
    WHERE entitlement_gpu_ms > coalesce(healthy_gpu_ms, 0)
"""

_AGAINST_USAGE = """
    SELECT coalesce(o.hour_at, u.hour_at) AS hour_at, coalesce(o.account, u.account) AS account,
           o.delivered_gpu_ms, u.gpu_ms AS allocated_gpu_ms
    FROM batch AS o
    FULL JOIN (
        SELECT hour_at, account, gpu_ms FROM warehouse.usage_hour
        WHERE cluster = :cluster AND class = 'allocated' AND gpu_ms > 0
          AND hour_at >= to_timestamp(:from_s) AND hour_at < to_timestamp(:to_s)
    ) AS u ON o.hour_at = u.hour_at AND o.account = u.account
    WHERE coalesce(o.delivered_gpu_ms, 0) <> coalesce(u.gpu_ms, 0)
"""


def owed_hour(subject: Subject) -> "list[Expectation]":
    """Return the suite of ``owed_hour``."""
    unknown = ("entitlement_gpu_ms", "owed_gpu_ms")
    return [
        *shape((*KEY, *AMOUNTS), key=KEY, amounts=AMOUNTS, nullable=unknown),
        no_rows(
            "owed is the smaller of entitlement and demand, and unknown where entitlement is",
            "SELECT hour_at, account, owed_gpu_ms, entitlement_gpu_ms, demand_gpu_ms FROM batch"
            " WHERE owed_gpu_ms IS DISTINCT FROM"
            " CASE WHEN entitlement_gpu_ms IS NOT NULL THEN least(entitlement_gpu_ms, demand_gpu_ms) END",
            law=Law.UNKNOWN,
        ),
        no_rows(
            "what runs hold is demand too",
            "SELECT hour_at, account, delivered_gpu_ms, demand_gpu_ms FROM batch"
            " WHERE delivered_gpu_ms > demand_gpu_ms",
        ),
        no_rows(
            "entitlements are at most the healthy capacity",
            in_place(_AGAINST_CAPACITY, subject),
            law=Law.CONSERVATION,
        ),
        no_rows("delivered is the allocated usage", in_place(_AGAINST_USAGE, subject), law=Law.CONSERVATION),
    ]
