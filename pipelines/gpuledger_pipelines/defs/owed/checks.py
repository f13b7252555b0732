"""Gates behind owed."""

from gpuledger_pipelines.expectations import owed as expect
from gpuledger_pipelines.gate import HOURS, Gate

OWED_HOUR = Gate("owed_hour", expect.KEY, HOURS, expect.owed_hour)
