"""Gates behind budget versus actual."""

from gpuledger_pipelines.expectations import budget as expect
from gpuledger_pipelines.gate import PERIODS, Gate

BUDGET_VS_ACTUAL = Gate("budget_vs_actual", expect.KEY, PERIODS, expect.budget_vs_actual)
