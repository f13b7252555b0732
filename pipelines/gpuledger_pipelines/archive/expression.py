"""The roll-up, written once: usage of accounts by the hour, sampled and used, in one Ibis expression.

It says what ``usage_bucket`` and ``usage_hour`` of the warehouse say, to the unit, on every engine that reads Parquet.
All arithmetic is that of whole numbers: sums are 64 bit and fail loudly where they overflow (ten million GPUs of one
account), and parts per million are taken off by multiplying whole millions with an exact decimal, never by a division.
"""

from decimal import Decimal
from typing import TYPE_CHECKING

from gpuledger_pipelines.partitions import BUCKET_S, DAY_S, HOUR_S

if TYPE_CHECKING:
    from ibis.expr.types import Table
    from ibis.expr.types.numeric import IntegerValue

PPM = 1_000_000
RUNG = "gpu_util"
"""The rung that the warehouse has."""

COLUMNS = ("hour_s", "account", "class", "gpu_ms", "sampled_gpu_ms", "used_gpu_ms")
"""Start of the hour in seconds since 1970; amounts are gpu_ms."""

_WHOSE = ["account", "class"]


def usage_hour(usage: "Table", telemetry: "Table", rung: str = RUNG) -> "Table":
    """Return the rows of ``usage_hour`` for the days that the two tables hold, in order.

    Args:
        usage: The archive's files of usage.
        telemetry: Its files of telemetry, of the same days.
        rung: What utilisation is measured by.
    """
    quarters = held(usage).union(seen(telemetry, rung))
    keys = ["bucket_s", *_WHOSE]
    quarters = quarters.group_by(keys).agg(
        gpu_ms=quarters.gpu_ms.sum(),
        sampled_gpu_ms=quarters.sampled_gpu_ms.sum(),
        used_gpu_upms=quarters.used_gpu_upms.sum(),
    )
    hours = quarters.select(
        "account",
        "class",
        "gpu_ms",
        "sampled_gpu_ms",
        hour_s=quarters.bucket_s - quarters.bucket_s % HOUR_S,
        used_gpu_ms=half_even(quarters.used_gpu_upms),
    )
    return (
        hours.group_by(["hour_s", *_WHOSE])
        .agg(
            gpu_ms=hours.gpu_ms.sum(),
            sampled_gpu_ms=hours.sampled_gpu_ms.sum(),
            used_gpu_ms=hours.used_gpu_ms.sum(),
        )
        .select(*COLUMNS)
        .order_by(["hour_s", *_WHOSE])
    )


def held(usage: "Table") -> "Table":
    """Return what runs held by account, class and quarter of an hour.

    Each end of a row changes a level, which is summed before it is carried from quarter to quarter: what is expanded is
    as long as the accounts, not as the runs. Rows lie within a day, so each day begins and ends at nothing.
    """
    import ibis

    zero_s = usage.from_s - usage.from_s % DAY_S
    begin = usage.select(*_WHOSE, day_s=zero_s, at_s=usage.from_s - zero_s, milli=usage.gpus_milli)
    end = usage.select(*_WHOSE, day_s=zero_s, at_s=usage.to_s - zero_s, milli=-usage.gpus_milli)
    edge = begin.union(end)
    step = edge.select(
        *_WHOSE,
        "day_s",
        "milli",
        quarter_s=edge.at_s - edge.at_s % BUCKET_S,
        inside=edge.milli * (BUCKET_S - edge.at_s % BUCKET_S),
    )
    step = step.group_by([*_WHOSE, "day_s", "quarter_s"]).agg(
        change=step.milli.sum(), inside=step.inside.sum()
    )
    grid = ibis.range(0, DAY_S, BUCKET_S).unnest().name("at_s").as_table()
    level = step.cross_join(grid).filter(lambda t: t.quarter_s <= t.at_s)
    level = level.select(
        *_WHOSE,
        bucket_s=level.day_s + level.at_s,
        gpu_ms=ibis.ifelse(level.quarter_s == level.at_s, level.inside, level.change * BUCKET_S),
    )
    level = level.group_by(["bucket_s", *_WHOSE]).agg(gpu_ms=level.gpu_ms.sum())
    level = level.filter(level.gpu_ms != 0)
    return level.select("bucket_s", *_WHOSE, "gpu_ms", sampled_gpu_ms=_nothing(), used_gpu_upms=_nothing())


def seen(telemetry: "Table", rung: str) -> "Table":
    """Return samples of a rung, each with its quarter of an hour; those of nobody's are left out."""
    owned = telemetry.filter((telemetry.rung == rung) & telemetry.account.notnull())
    return owned.select(
        *_WHOSE,
        "sampled_gpu_ms",
        "used_gpu_upms",
        bucket_s=owned.bucket_s - owned.bucket_s % BUCKET_S,
        gpu_ms=_nothing(),
    ).select("bucket_s", *_WHOSE, "gpu_ms", "sampled_gpu_ms", "used_gpu_upms")


def half_even(upms: "IntegerValue") -> "IntegerValue":
    """Return millionths as whole units, to the nearest, half to even."""
    import ibis

    rest = upms % PPM
    # A whole number of millions times an exact millionth: a decimal with nothing behind the point.
    millionth = ibis.literal(Decimal("0.000001"), type="decimal(25, 6)")
    whole = ((upms - rest).cast("decimal(25, 6)") * millionth).cast("int64")
    goes_up = (rest > PPM // 2) | ((rest == PPM // 2) & (whole % 2 == 1))
    return whole + ibis.ifelse(goes_up, 1, 0).cast("int64")


def _nothing() -> "IntegerValue":
    import ibis

    return ibis.literal(0, type="int64")
