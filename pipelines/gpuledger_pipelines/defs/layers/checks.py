"""Gates behind the layers."""

from gpuledger_pipelines.expectations import layers as expect
from gpuledger_pipelines.gate import BUCKETS, DAYS, HOURS, Gate

GPU_BUCKET = Gate("gpu_bucket", expect.BUCKET_KEY, BUCKETS, expect.gpu_bucket)
GPU_HOUR = Gate("gpu_hour", expect.HOUR_KEY, HOURS, expect.gpu_hour)
LAYER_METRICS_HOUR = Gate("layer_metrics_hour", expect.HOUR_KEY, HOURS, expect.layer_metrics_hour)
LAYER_METRICS_DAY = Gate("layer_metrics_day", expect.DAY_KEY, DAYS, expect.layer_metrics_day)
