"""What holds of a forecast: one for each budget, in a band that begins where delivery stands, or a reason."""

from typing import TYPE_CHECKING

from gpuledger.warehouse.forecast_tables import forecast as table
from gpuledger_pipelines.expectations.shape import Law, no_rows, shape
from gpuledger_pipelines.forecasting import LEAST_DAYS
from gpuledger_pipelines.gate import PERIODS, Subject, in_place

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

KEY = ("cluster", "period", "account")
FORESEEN = ("forecast_gpu_ms", "low_gpu_ms", "high_gpu_ms")
COUNTS = ("history_day_count", "left_day_count")

_AGAINST_BUDGET = f"""
    SELECT period, account, f.delivered_gpu_ms, b.delivered_gpu_ms AS budget_delivered_gpu_ms
    FROM batch AS f
    FULL JOIN (SELECT * FROM warehouse.budget_vs_actual WHERE cluster = :cluster AND {PERIODS}) AS b
        USING (period, account)
    WHERE f.delivered_gpu_ms IS DISTINCT FROM b.delivered_gpu_ms
"""


def forecast(subject: Subject) -> "list[Expectation]":
    """Return the suite of ``forecast``."""
    at, foreseen = "period, account", ", ".join(FORESEEN)
    return [
        *shape(
            [column.name for column in table.columns],
            key=KEY,
            # What is delivered may be below zero where it is in budget_vs_actual; the band bounds the others by it.
            amounts=COUNTS,
            nullable=(*FORESEEN, "reason"),
        ),
        no_rows(
            "the band holds the forecast and begins at what is delivered",
            f"SELECT {at}, delivered_gpu_ms, {foreseen} FROM batch WHERE NOT (delivered_gpu_ms <= low_gpu_ms"
            " AND low_gpu_ms <= forecast_gpu_ms AND forecast_gpu_ms <= high_gpu_ms)",
        ),
        no_rows(
            "there is a forecast with both ends of its band, or a reason",
            f"SELECT {at}, {foreseen}, reason FROM batch"
            f" WHERE num_nulls({foreseen}) <> CASE WHEN reason IS NULL THEN 0 ELSE {len(FORESEEN)} END",
            law=Law.UNKNOWN,
        ),
        no_rows(
            "nothing is foretold from a short history, or of a period that is over",
            f"SELECT {at}, history_day_count, left_day_count FROM batch"
            f" WHERE forecast_gpu_ms IS NOT NULL AND (history_day_count < {LEAST_DAYS} OR left_day_count < 1)",
            law=Law.UNKNOWN,
        ),
        no_rows(
            "nothing was known that happens after the run's present",
            in_place(f"SELECT {at}, as_of_at FROM batch WHERE as_of_at <> to_timestamp(:now_s)", subject),
        ),
        no_rows(
            "every budget has a line, with what was delivered of it",
            in_place(_AGAINST_BUDGET, subject),
            law=Law.DROPPED,
        ),
    ]
