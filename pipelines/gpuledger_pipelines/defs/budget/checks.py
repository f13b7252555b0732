"""Gates behind budget versus actual."""

from gpuledger_pipelines.declaring import gate
from gpuledger_pipelines.defs.budget.assets import PERIODS, budget_vs_actual
from gpuledger_pipelines.expectations import budget as expect

budget_vs_actual_suite = gate(budget_vs_actual, key=expect.KEY, where=PERIODS, expect=expect.budget_vs_actual)

CHECKS = (budget_vs_actual_suite,)
