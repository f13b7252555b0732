-- An hour is the sum of its four buckets.
INSERT INTO warehouse.usage_hour (cluster, hour_at, account, class, gpu_ms, sampled_gpu_ms, used_gpu_ms)
SELECT cluster, date_bin('1 hour', bucket_at, timestamptz '1970-01-01 00:00:00+00'), account, class,
       sum(gpu_ms)::bigint, sum(sampled_gpu_ms)::bigint, sum(used_gpu_ms)::bigint
FROM warehouse.usage_bucket
WHERE cluster = :cluster AND bucket_at >= to_timestamp(:from_s) AND bucket_at < to_timestamp(:to_s)
GROUP BY 1, 2, 3, 4
