"""What the warehouse foresees of budgets, and which of them it sees overrun."""

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from gpuledger.database.engine import Reader
from gpuledger.kernel.clock import iso
from gpuledger.warehouse.forecast_tables import BAND_PERCENT, forecast

NOT_MADE = "no forecast was made of it yet: gpuledger rollup makes one"


class Overrun(StrEnum):
    """Whether a period's budget will do."""

    NONE = "none"
    POSSIBLE = "possible"
    EXPECTED = "expected"


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What an account will have been delivered by the end of a period.

    Args:
        forecast_gpu_ms: In the middle one of all futures.
        low_gpu_ms: Where the band begins.
        high_gpu_ms: Where it ends.
        history_days: Whole days that it was told from.
        as_of: Nothing that happened later was looked at.
        reason: Why the amounts are None.
    """

    forecast_gpu_ms: int | None
    low_gpu_ms: int | None
    high_gpu_ms: int | None
    history_days: int
    as_of: dt.datetime | None
    reason: str | None

    def as_json(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return it under the published keys.

        Args:
            row: The budget-versus-actual row that it belongs to.
        """
        verdict = overrun(self, funds_gpu_ms(row))
        return {
            "gpu_ms": self.forecast_gpu_ms,
            "low_gpu_ms": self.low_gpu_ms,
            "high_gpu_ms": self.high_gpu_ms,
            "band_percent": BAND_PERCENT,
            "overrun": None if verdict is None else verdict.value,
            "history_days": self.history_days,
            "as_of": None if self.as_of is None else iso(self.as_of),
            "reason": self.reason,
        }


UNSEEN = Foreseen(None, None, None, 0, None, NOT_MADE)


def funds_gpu_ms(row: dict[str, Any]) -> int | None:
    """Return what may be spent of a budget-versus-actual row by the period's end; None where nobody set any."""
    if row["budget_gpu_ms"] == 0 and row["transferred_gpu_ms"] == 0:
        return None
    return int(row["budget_gpu_ms"] + row["transferred_gpu_ms"] - row["expired_gpu_ms"])


def overrun(foreseen: Foreseen, funds: int | None) -> Overrun | None:
    """Return whether more will be delivered than is funded; None without a forecast or without a budget."""
    if funds is None or foreseen.forecast_gpu_ms is None or foreseen.high_gpu_ms is None:
        return None
    if foreseen.forecast_gpu_ms > funds:
        return Overrun.EXPECTED
    return Overrun.POSSIBLE if foreseen.high_gpu_ms > funds else Overrun.NONE


def forecasts(reader: Reader, cluster: str | None, period: str) -> dict[tuple[str, str, str], Foreseen]:
    """Return (cluster, period, account) -> what is foreseen, of one cluster or of all."""
    column = forecast.c
    statement = sa.select(forecast).where(column.period == period)
    if cluster is not None:
        statement = statement.where(column.cluster == cluster)
    return {
        (row["cluster"], row["period"], row["account"]): Foreseen(
            row["forecast_gpu_ms"],
            row["low_gpu_ms"],
            row["high_gpu_ms"],
            row["history_day_count"],
            row["as_of_at"],
            row["reason"],
        )
        for row in reader.execute(statement).mappings()
    }
