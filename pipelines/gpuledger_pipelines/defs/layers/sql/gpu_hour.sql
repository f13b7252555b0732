-- An hour is the sum of its four buckets, and unknown where the inventory begins only inside it.
WITH
-- include: inventory
,
hour AS (
    SELECT date_bin('1 hour', bucket_at, timestamptz '1970-01-01 00:00:00+00') AS hour_at,
-- include: states
    FROM warehouse.gpu_bucket
    WHERE cluster = :cluster AND bucket_at >= to_timestamp(:from_s) AND bucket_at < to_timestamp(:to_s)
    GROUP BY 1
)
INSERT INTO warehouse.gpu_hour
    (cluster, hour_at, installed_gpu_ms, unhealthy_gpu_ms, unhealthy_occupied_gpu_ms, maintenance_gpu_ms,
     allocated_gpu_ms, unallocated_gpu_ms, overhead_gpu_ms, reserved_gpu_ms, free_gpu_ms, lost_gpu_ms, unknown_gpu_ms,
     residual_gpu_ms, reason)
SELECT :cluster, hour_at,
       CASE WHEN known THEN installed END, CASE WHEN known THEN unhealthy END,
       CASE WHEN known THEN unhealthy_occupied END, CASE WHEN known THEN maintenance END,
       allocated, unallocated,
       CASE WHEN known THEN overhead END, CASE WHEN known THEN reserved END, CASE WHEN known THEN free END,
       CASE WHEN known THEN lost END, CASE WHEN known THEN unknown END, CASE WHEN known THEN residual END,
       CASE WHEN NOT known THEN missing END
FROM (SELECT *, coalesce(hour_at >= since, false) AS known FROM hour CROSS JOIN inventory) AS told
