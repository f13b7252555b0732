"""How far each cluster has been rolled up, and how much of its book that has seen."""

import datetime as dt
from dataclasses import dataclass

import sqlalchemy as sa

from gpuledger.database.engine import Reader
from gpuledger.warehouse.tables import layer_metrics_hour, watermark


@dataclass(frozen=True, slots=True)
class Span:
    """What of a cluster has been rolled up: the half-open interval of its hours."""

    from_at: dt.datetime
    to_at: dt.datetime


def spans(reader: Reader) -> dict[str, Span]:
    """Return cluster -> the interval that has been rolled up; clusters without any are absent."""
    column = layer_metrics_hour.c
    statement = sa.select(column.cluster, sa.func.min(column.hour_at), sa.func.max(column.hour_at)).group_by(
        column.cluster
    )
    return {
        cluster: Span(first, last + dt.timedelta(hours=1))
        for cluster, first, last in reader.execute(statement)
    }


def seen(reader: Reader) -> dict[str, tuple[int, dt.datetime]]:
    """Return cluster -> the newest row of its book that a roll-up has seen, and when it looked."""
    rows = reader.execute(sa.select(watermark.c.cluster, watermark.c.ledger_seq, watermark.c.as_of_at))
    return {cluster: (seq, at) for cluster, seq, at in rows}
