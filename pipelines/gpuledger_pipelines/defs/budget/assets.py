"""Budget versus actual by account and period."""

from gpuledger.kernel.calendar import Calendar
from gpuledger_pipelines.declaring import warehouse_asset
from gpuledger_pipelines.defs.budget.checks import BUDGET_VS_ACTUAL
from gpuledger_pipelines.defs.owed.assets import owed_hour
from gpuledger_pipelines.defs.usage.assets import usage_bucket
from gpuledger_pipelines.gate import PERIODS
from gpuledger_pipelines.partitions import BUCKET_S, Span
from gpuledger_pipelines.resources import Rewriting


@warehouse_asset(
    group="budget",
    gate=BUDGET_VS_ACTUAL,
    deps=[owed_hour, usage_bucket],
    ledger=("balances", "hosts", "segments", "rates"),
)
def budget_vs_actual(rewriting: Rewriting, span: Span) -> int:
    """What was budgeted, owed and delivered, and why they differ; whole periods that the range touches."""
    periods = periods_touched(rewriting.calendar(), span)
    edges = {"first_period": periods["periods"][0], "last_period": periods["periods"][-1]}
    rewriting.delete(PERIODS, {**span.binds, **edges})
    return rewriting.insert("budget/budget_vs_actual", {**span.binds, **periods, "bucket_s": BUCKET_S})


def periods_touched(calendar: Calendar, span: Span) -> dict[str, list[str] | list[int]]:
    """Return the organisation's periods that the span touches, each from its first instant to its last."""
    periods = calendar.periods_between(span.from_s, span.to_s)
    bounds = [calendar.period_bounds_s(period) for period in periods]
    return {"periods": periods, "starts": [start for start, _ in bounds], "ends": [end for _, end in bounds]}


ASSETS = (budget_vs_actual,)
