"""The warehouse's tables, column by column. All amounts are physical gpu_ms unless said otherwise.

Filled by the pipelines, read by the API; every row can be recomputed from the ledger.
"""

import sqlalchemy as sa

from gpuledger.database.metadata import METADATA, Instant

Column, Text, BigInteger = sa.Column, sa.Text, sa.BigInteger


def _amounts(*names: str, nullable: bool = False) -> list[sa.Column[int]]:
    return [Column(name, BigInteger, nullable=nullable) for name in names]


usage_bucket = sa.Table(
    "usage_bucket",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("bucket_at", Instant, primary_key=True, comment="start of 15 minutes UTC"),
    Column("account", Text, primary_key=True),
    Column("class", Text, primary_key=True, key="klass", comment="allocated or unallocated"),
    *_amounts("gpu_ms", "sampled_gpu_ms", "used_gpu_ms"),
    schema="warehouse",
    comment="occupied GPU-time by account and class; sampled and used by the gpu_util rung",
)

usage_hour = sa.Table(
    "usage_hour",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("hour_at", Instant, primary_key=True, comment="start of the hour, UTC"),
    Column("account", Text, primary_key=True),
    Column("class", Text, primary_key=True, key="klass"),
    *_amounts("gpu_ms", "sampled_gpu_ms", "used_gpu_ms"),
    schema="warehouse",
    comment="sums of four buckets",
)

owed_hour = sa.Table(
    "owed_hour",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("hour_at", Instant, primary_key=True),
    Column("account", Text, primary_key=True),
    *_amounts("entitlement_gpu_ms", nullable=True),
    *_amounts("demand_gpu_ms"),
    *_amounts("owed_gpu_ms", nullable=True),
    *_amounts("delivered_gpu_ms"),
    schema="warehouse",
    comment="entitlement E, demand D, owed W = min(E, D), delivered L; E and W are null without inventory",
)


capacity_bucket = sa.Table(
    "capacity_bucket",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("bucket_at", Instant, primary_key=True, comment="start of 15 minutes UTC"),
    *_amounts("installed_gpu_ms"),
    Column("unhealthy_gpu_ms", BigInteger, nullable=False, comment="unhealthy and empty"),
    Column("unhealthy_occupied_gpu_ms", BigInteger, nullable=False, comment="unhealthy while a run held it"),
    Column("maintenance_gpu_ms", BigInteger, nullable=False, comment="in maintenance or draining, and empty"),
    schema="warehouse",
    comment="what the inventory offered; no rows for a cluster without inventory",
)

watermark = sa.Table(
    "watermark",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("ledger_seq", BigInteger, nullable=False, comment="newest journal row when usage was last read"),
    Column("as_of_at", Instant, nullable=False, comment="open runs were counted up to here"),
    schema="warehouse",
    comment="how far the newest roll-up of each cluster has seen",
)


def _layers(name: str, *key: sa.Column[object]) -> sa.Table:
    return sa.Table(
        name,
        METADATA,
        Column("cluster", Text, primary_key=True),
        *key,
        # The partition of installed GPU-time (law 9); null without inventory.
        *_amounts("installed_gpu_ms", "unhealthy_gpu_ms", "maintenance_gpu_ms", nullable=True),
        # Beside the partition: counted in allocated and unallocated there, and not available all the same.
        *_amounts("unhealthy_occupied_gpu_ms", nullable=True),
        *_amounts("allocated_gpu_ms", "unallocated_gpu_ms"),
        *_amounts(
            "overhead_gpu_ms",
            "reserved_gpu_ms",
            "free_gpu_ms",
            "lost_gpu_ms",
            "unknown_gpu_ms",
            "residual_gpu_ms",
            nullable=True,
        ),
        # Sums over accounts, hour by hour: owed W, delivered L, and min(L, W).
        *_amounts("owed_gpu_ms", nullable=True),
        *_amounts("delivered_gpu_ms"),
        *_amounts("hourly_met_gpu_ms", nullable=True),
        *_amounts("sampled_gpu_ms", "used_gpu_ms"),
        Column("reason", Text, comment="why columns are null"),
        schema="warehouse",
    )


layer_metrics_hour = _layers("layer_metrics_hour", Column("hour_at", Instant, primary_key=True))
layer_metrics_day = _layers(
    "layer_metrics_day", Column("day", sa.Date, primary_key=True, comment="in the organisation's zone")
)

budget_vs_actual = sa.Table(
    "budget_vs_actual",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("period", Text, primary_key=True),
    Column("account", Text, primary_key=True),
    # Weighted units (weight 1000 per mille unless a rate card says otherwise), so equal to physical for now.
    *_amounts(
        "budget_gpu_ms",
        "transferred_gpu_ms",
        "charged_gpu_ms",
        "held_gpu_ms",
        "credited_gpu_ms",
        "expired_gpu_ms",
        "available_gpu_ms",
        "unallocated_gpu_ms",
    ),
    # Variance by cause; budget - delivered is their sum. Null without inventory.
    *_amounts("entitlement_gpu_ms", "demand_gpu_ms", "owed_gpu_ms", "delivered_gpu_ms", nullable=True),
    *_amounts(
        "variance_transfer_gpu_ms",
        "variance_expiry_gpu_ms",
        "variance_capacity_gpu_ms",
        "variance_demand_gpu_ms",
        "variance_scheduler_gpu_ms",
        "variance_credit_gpu_ms",
        nullable=True,
    ),
    schema="warehouse",
)

__all__ = [
    "budget_vs_actual",
    "capacity_bucket",
    "layer_metrics_day",
    "layer_metrics_hour",
    "owed_hour",
    "usage_bucket",
    "usage_hour",
    "watermark",
]
