"""Gates behind the layers."""

from gpuledger_pipelines.expectations import layers as expect
from gpuledger_pipelines.gate import BUCKETS, DAYS, HOURS, Gate

CAPACITY_BUCKET = Gate("capacity_bucket", expect.CAPACITY_KEY, BUCKETS, expect.capacity_bucket)
LAYER_METRICS_HOUR = Gate("layer_metrics_hour", expect.HOUR_KEY, HOURS, expect.layer_metrics_hour)
LAYER_METRICS_DAY = Gate("layer_metrics_day", expect.DAY_KEY, DAYS, expect.layer_metrics_day)
