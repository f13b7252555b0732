-- Days of the organisation's zone, whose edges may lie inside an hour: physical amounts are sums of the
-- 15-minute buckets between the edges, owed and delivered are sums of the hours that begin in the day.
WITH
day AS (
    SELECT day, to_timestamp(start_s) AS start_at, to_timestamp(end_s) AS end_at
    FROM unnest(CAST(:days AS date[]), CAST(:starts AS bigint[]), CAST(:ends AS bigint[])) AS d (day, start_s, end_s)
),
state AS (
    SELECT day,
-- include: states
    FROM day
    JOIN warehouse.gpu_bucket ON cluster = :cluster AND bucket_at >= start_at AND bucket_at < end_at
    GROUP BY 1
),
sample AS (
    SELECT day, sum(sampled_gpu_ms)::bigint AS sampled, sum(used_gpu_ms)::bigint AS used
    FROM day
    JOIN warehouse.usage_bucket ON cluster = :cluster AND bucket_at >= start_at AND bucket_at < end_at
    GROUP BY 1
),
impact AS (
    SELECT day, sum(owed_gpu_ms)::bigint AS owed, sum(delivered_gpu_ms)::bigint AS delivered,
           sum(hourly_met_gpu_ms)::bigint AS met
    FROM day
    JOIN warehouse.layer_metrics_hour ON cluster = :cluster AND hour_at >= start_at AND hour_at < end_at
    GROUP BY 1
),
-- include: inventory
,
whole AS (
    SELECT *, coalesce(start_at >= since, false) AS known
    FROM state
    FULL JOIN sample USING (day)
    FULL JOIN impact USING (day)
    JOIN day USING (day)
    CROSS JOIN inventory
)
INSERT INTO warehouse.layer_metrics_day
    (cluster, day, installed_gpu_ms, unhealthy_gpu_ms, unhealthy_occupied_gpu_ms, maintenance_gpu_ms,
     allocated_gpu_ms, unallocated_gpu_ms, overhead_gpu_ms, reserved_gpu_ms, free_gpu_ms, lost_gpu_ms, unknown_gpu_ms,
     residual_gpu_ms, owed_gpu_ms, delivered_gpu_ms, hourly_met_gpu_ms, sampled_gpu_ms, used_gpu_ms, reason)
SELECT :cluster, day,
       CASE WHEN known THEN coalesce(installed, 0) END, CASE WHEN known THEN coalesce(unhealthy, 0) END,
       CASE WHEN known THEN coalesce(unhealthy_occupied, 0) END, CASE WHEN known THEN coalesce(maintenance, 0) END,
       coalesce(allocated, 0), coalesce(unallocated, 0),
       CASE WHEN known THEN coalesce(overhead, 0) END, CASE WHEN known THEN coalesce(reserved, 0) END,
       CASE WHEN known THEN coalesce(free, 0) END, CASE WHEN known THEN coalesce(lost, 0) END,
       CASE WHEN known THEN coalesce(unknown, 0) END, CASE WHEN known THEN coalesce(residual, 0) END,
       CASE WHEN known THEN coalesce(owed, 0) END, coalesce(delivered, 0), CASE WHEN known THEN coalesce(met, 0) END,
       coalesce(sampled, 0), coalesce(used, 0), CASE WHEN NOT known THEN missing END
FROM whole
