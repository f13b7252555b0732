CREATE INDEX ix_buckets_run ON telemetry.buckets (book, workload, run, bucket_at) WHERE run <> '';
