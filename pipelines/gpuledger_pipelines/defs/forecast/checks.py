"""Gates behind the forecast."""

from gpuledger_pipelines.expectations import forecast as expect
from gpuledger_pipelines.gate import PERIODS, Gate

FORECAST = Gate("forecast", expect.KEY, PERIODS, expect.forecast)
