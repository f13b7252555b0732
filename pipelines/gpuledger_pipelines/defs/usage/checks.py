"""Gates behind usage."""

from gpuledger_pipelines.expectations import usage as expect
from gpuledger_pipelines.gate import BUCKETS, HOURS, Gate

USAGE_BUCKET = Gate("usage_bucket", expect.BUCKET_KEY, BUCKETS, expect.usage_bucket)
USAGE_HOUR = Gate("usage_hour", expect.HOUR_KEY, HOURS, expect.usage_hour)
