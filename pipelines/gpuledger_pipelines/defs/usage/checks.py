"""Gates behind usage."""

from gpuledger_pipelines.declaring import BUCKETS, HOURS, gate
from gpuledger_pipelines.defs.usage.assets import usage_bucket, usage_hour
from gpuledger_pipelines.expectations import usage as expect

usage_bucket_suite = gate(usage_bucket, key=expect.BUCKET_KEY, where=BUCKETS, expect=expect.usage_bucket)
usage_hour_suite = gate(usage_hour, key=expect.HOUR_KEY, where=HOURS, expect=expect.usage_hour)

CHECKS = (usage_bucket_suite, usage_hour_suite)
