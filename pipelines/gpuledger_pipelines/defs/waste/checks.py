"""Gates behind waste."""

from gpuledger_pipelines.expectations import waste as expect
from gpuledger_pipelines.gate import DAYS, Gate

WASTE_DAY = Gate("waste_day", expect.KEY, DAYS, expect.waste_day)
