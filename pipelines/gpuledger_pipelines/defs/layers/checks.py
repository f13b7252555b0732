"""Gates behind the layers."""

from gpuledger_pipelines.declaring import BUCKETS, HOURS, gate
from gpuledger_pipelines.defs.layers.assets import (
    DAYS,
    capacity_bucket,
    layer_metrics_day,
    layer_metrics_hour,
)
from gpuledger_pipelines.expectations import layers as expect

capacity_bucket_suite = gate(
    capacity_bucket, key=expect.CAPACITY_KEY, where=BUCKETS, expect=expect.capacity_bucket
)
layer_metrics_hour_suite = gate(
    layer_metrics_hour, key=expect.HOUR_KEY, where=HOURS, expect=expect.layer_metrics_hour
)
layer_metrics_day_suite = gate(
    layer_metrics_day, key=expect.DAY_KEY, where=DAYS, expect=expect.layer_metrics_day
)

CHECKS = (capacity_bucket_suite, layer_metrics_hour_suite, layer_metrics_day_suite)
