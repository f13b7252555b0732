"""What accounts will have been delivered when a period ends, column by column. Filled by the pipelines.

All amounts are physical gpu_ms. A forecast is a function of what had been rolled up at ``as_of_at``; each roll-up puts
a newer one in its place.
"""

import sqlalchemy as sa

from gpuledger.database.metadata import METADATA, Instant

Column, Text, BigInteger = sa.Column, sa.Text, sa.BigInteger

BAND_PERCENT = 80
"""In how many of a hundred futures what is delivered lies within the band, if the future is like the past."""


def _expected(name: str, meaning: str) -> sa.Column[int]:
    return Column(f"{name}_gpu_ms", BigInteger, comment=f"gpu_ms: {meaning}; null: not known, for a reason")


forecast = sa.Table(
    "forecast",
    METADATA,
    Column("cluster", Text, primary_key=True, comment="the cluster, which is also the book"),
    Column("period", Text, primary_key=True, comment="the organisation's period, such as 2017-10"),
    Column("account", Text, primary_key=True, comment="path of the account that it counts under"),
    Column(
        "delivered_gpu_ms",
        BigInteger,
        nullable=False,
        comment="gpu_ms: L net of credits, weighted, up to as_of_at, as budget_vs_actual has it",
    ),
    _expected("forecast", "delivered by the end of the period, in the middle one of all futures"),
    _expected("low", "less is delivered by the end of the period in one future of ten"),
    _expected("high", "more is delivered by the end of the period in one future of ten"),
    Column(
        "history_day_count",
        BigInteger,
        nullable=False,
        comment="whole days before as_of_at that are known without a gap, since the account had its first GPU",
    ),
    Column(
        "left_day_count",
        BigInteger,
        nullable=False,
        comment="days of the period that were not over at as_of_at",
    ),
    Column("as_of_at", Instant, nullable=False, comment="nothing that happened later was looked at"),
    Column("reason", Text, comment="why there is no forecast"),
    schema="warehouse",
    comment="what an account will have been delivered when the period ends, and the band that holds 80 % of futures",
)

__all__ = ["forecast"]
