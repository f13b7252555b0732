-- Buckets of handles stay: they are known to nobody then.
CREATE OR REPLACE VIEW ledger_read.buckets AS
    SELECT book AS cluster, bucket_at, gpu, workload, run, rung, sampled_gpu_ms, used_gpu_upms
    FROM telemetry.buckets;
DROP VIEW telemetry.run_buckets;
DROP TABLE telemetry.handles;
COMMENT ON COLUMN telemetry.buckets.workload IS 'empty when no run held the GPU';
COMMENT ON COLUMN telemetry.buckets.run IS NULL;
