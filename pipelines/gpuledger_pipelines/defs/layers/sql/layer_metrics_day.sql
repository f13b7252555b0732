-- Days of the organisation's zone, whose edges may lie inside an hour: physical amounts are sums of the
-- 15-minute buckets between the edges, owed and delivered are sums of the hours that begin in the day.
WITH
-- include: capacity
,
-- include: reserved
,
-- include: integral
,
day AS (
    SELECT day, to_timestamp(start_s) AS start_at, to_timestamp(end_s) AS end_at
    FROM unnest(CAST(:days AS date[]), CAST(:starts AS bigint[]), CAST(:ends AS bigint[])) AS d (day, start_s, end_s)
),
used AS (
    SELECT day,
           coalesce(sum(gpu_ms) FILTER (WHERE class = 'allocated'), 0)::bigint AS allocated,
           coalesce(sum(gpu_ms) FILTER (WHERE class = 'unallocated'), 0)::bigint AS unallocated,
           sum(sampled_gpu_ms)::bigint AS sampled, sum(used_gpu_ms)::bigint AS used
    FROM day
    JOIN warehouse.usage_bucket ON cluster = :cluster AND bucket_at >= start_at AND bucket_at < end_at
    GROUP BY 1
),
capacity AS (
    SELECT day, sum(installed_gpu_ms)::bigint AS installed, sum(unhealthy_gpu_ms)::bigint AS unhealthy,
           sum(unhealthy_occupied_gpu_ms)::bigint AS unhealthy_occupied, sum(maintenance_gpu_ms)::bigint AS maintenance
    FROM day
    JOIN warehouse.capacity_bucket ON cluster = :cluster AND bucket_at >= start_at AND bucket_at < end_at
    GROUP BY 1
),
impact AS (
    SELECT day, sum(owed_gpu_ms)::bigint AS owed, sum(delivered_gpu_ms)::bigint AS delivered,
           sum(hourly_met_gpu_ms)::bigint AS met
    FROM day
    JOIN warehouse.layer_metrics_hour ON cluster = :cluster AND hour_at >= start_at AND hour_at < end_at
    GROUP BY 1
),
kept AS (
    SELECT day, sum(gpu_ms)::bigint AS reserved
    FROM day
    JOIN warehouse.capacity_bucket ON cluster = :cluster AND bucket_at >= start_at AND bucket_at < end_at
    JOIN integral ON bucket_at = to_timestamp(bucket_s)
    GROUP BY 1
),
-- include: inventory
,
whole AS (
    SELECT day, coalesce(start_at >= since, false) AS known, missing,
           coalesce(installed, 0) AS installed, coalesce(unhealthy, 0) AS unhealthy,
           coalesce(unhealthy_occupied, 0) AS unhealthy_occupied, coalesce(maintenance, 0) AS maintenance,
           coalesce(reserved, 0) AS reserved,
           coalesce(allocated, 0) AS allocated, coalesce(unallocated, 0) AS unallocated,
           coalesce(owed, 0) AS owed, coalesce(delivered, 0) AS delivered, coalesce(met, 0) AS met,
           coalesce(sampled, 0) AS sampled, coalesce(used.used, 0) AS used
    FROM used
    FULL JOIN capacity USING (day)
    FULL JOIN impact USING (day)
    LEFT JOIN kept USING (day)
    JOIN day USING (day)
    CROSS JOIN inventory
),
split AS (
    SELECT *, installed - allocated - unallocated - unhealthy - maintenance - reserved AS free FROM whole
)
INSERT INTO warehouse.layer_metrics_day
    (cluster, day, installed_gpu_ms, unhealthy_gpu_ms, unhealthy_occupied_gpu_ms, maintenance_gpu_ms,
     allocated_gpu_ms, unallocated_gpu_ms, overhead_gpu_ms, reserved_gpu_ms, free_gpu_ms, lost_gpu_ms, unknown_gpu_ms,
     residual_gpu_ms, owed_gpu_ms, delivered_gpu_ms, hourly_met_gpu_ms, sampled_gpu_ms, used_gpu_ms, reason)
SELECT :cluster, day,
       CASE WHEN known THEN installed END, CASE WHEN known THEN unhealthy END,
       CASE WHEN known THEN unhealthy_occupied END, CASE WHEN known THEN maintenance END,
       allocated, unallocated,
       CASE WHEN known THEN 0 END, CASE WHEN known THEN reserved END,
       CASE WHEN known THEN free END,
       CASE WHEN known THEN 0 END, CASE WHEN known THEN 0 END,
       CASE WHEN known THEN installed - allocated - unallocated - unhealthy - maintenance - reserved - free END,
       CASE WHEN known THEN owed END, delivered, CASE WHEN known THEN met END, sampled, used,
       CASE WHEN NOT known THEN missing END
FROM split
