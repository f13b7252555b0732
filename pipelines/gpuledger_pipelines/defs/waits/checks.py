"""Gates behind waits."""

from gpuledger_pipelines.expectations import waits as expect
from gpuledger_pipelines.gate import DAYS, Gate

QUEUE_WAIT_DAY = Gate("queue_wait_day", expect.KEY, DAYS, expect.queue_wait_day)
