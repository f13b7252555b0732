"""Gates behind hosts."""

from gpuledger_pipelines.expectations import hosts as expect
from gpuledger_pipelines.gate import DAYS, Gate

HOST_HEALTH_DAY = Gate("host_health_day", expect.KEY, DAYS, expect.host_health_day)
