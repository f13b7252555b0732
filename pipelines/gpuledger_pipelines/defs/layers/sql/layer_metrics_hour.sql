-- The partition of installed GPU-time (law 9) and the sums that the layers are ratios of. Nothing is clamped:
-- where more was occupied than installed, free is negative, and the gate names the hour.
WITH
-- include: capacity
,
-- include: reserved
,
-- include: integral
,
used AS (
    SELECT hour_at,
           coalesce(sum(gpu_ms) FILTER (WHERE class = 'allocated'), 0)::bigint AS allocated,
           coalesce(sum(gpu_ms) FILTER (WHERE class = 'unallocated'), 0)::bigint AS unallocated,
           sum(sampled_gpu_ms)::bigint AS sampled, sum(used_gpu_ms)::bigint AS used
    FROM warehouse.usage_hour
    WHERE cluster = :cluster AND hour_at >= to_timestamp(:from_s) AND hour_at < to_timestamp(:to_s)
    GROUP BY 1
),
capacity AS (
    SELECT date_bin('1 hour', bucket_at, timestamptz '1970-01-01 00:00:00+00') AS hour_at,
           sum(installed_gpu_ms)::bigint AS installed, sum(unhealthy_gpu_ms)::bigint AS unhealthy,
           sum(unhealthy_occupied_gpu_ms)::bigint AS unhealthy_occupied, sum(maintenance_gpu_ms)::bigint AS maintenance
    FROM warehouse.capacity_bucket
    WHERE cluster = :cluster AND bucket_at >= to_timestamp(:from_s) AND bucket_at < to_timestamp(:to_s)
    GROUP BY 1
),
impact AS (
    SELECT hour_at, sum(owed_gpu_ms)::bigint AS owed, sum(delivered_gpu_ms)::bigint AS delivered,
           sum(CASE WHEN owed_gpu_ms IS NOT NULL THEN least(delivered_gpu_ms, owed_gpu_ms) END)::bigint AS met
    FROM warehouse.owed_hour
    WHERE cluster = :cluster AND hour_at >= to_timestamp(:from_s) AND hour_at < to_timestamp(:to_s)
    GROUP BY 1
),
kept AS (
    SELECT to_timestamp(bucket_s) AS hour_at, gpu_ms AS reserved FROM integral
),
-- include: inventory
,
hour AS (
    SELECT hour_at, coalesce(hour_at >= since, false) AS known, missing,
           coalesce(installed, 0) AS installed, coalesce(unhealthy, 0) AS unhealthy,
           coalesce(unhealthy_occupied, 0) AS unhealthy_occupied, coalesce(maintenance, 0) AS maintenance,
           coalesce(reserved, 0) AS reserved,
           coalesce(allocated, 0) AS allocated, coalesce(unallocated, 0) AS unallocated,
           coalesce(owed, 0) AS owed, coalesce(delivered, 0) AS delivered, coalesce(met, 0) AS met,
           coalesce(sampled, 0) AS sampled, coalesce(used.used, 0) AS used
    FROM used
    FULL JOIN capacity USING (hour_at)
    FULL JOIN impact USING (hour_at)
    LEFT JOIN kept USING (hour_at)
    CROSS JOIN inventory
),
split AS (
    SELECT *, installed - allocated - unallocated - unhealthy - maintenance - reserved AS free FROM hour
)
INSERT INTO warehouse.layer_metrics_hour
    (cluster, hour_at, installed_gpu_ms, unhealthy_gpu_ms, unhealthy_occupied_gpu_ms, maintenance_gpu_ms,
     allocated_gpu_ms, unallocated_gpu_ms, overhead_gpu_ms, reserved_gpu_ms, free_gpu_ms, lost_gpu_ms, unknown_gpu_ms,
     residual_gpu_ms, owed_gpu_ms, delivered_gpu_ms, hourly_met_gpu_ms, sampled_gpu_ms, used_gpu_ms, reason)
SELECT :cluster, hour_at,
       CASE WHEN known THEN installed END, CASE WHEN known THEN unhealthy END,
       CASE WHEN known THEN unhealthy_occupied END, CASE WHEN known THEN maintenance END,
       allocated, unallocated,
       -- No source says prolog, epilog, silence or doubt yet: these states hold nothing.
       CASE WHEN known THEN 0 END, CASE WHEN known THEN reserved END,
       CASE WHEN known THEN free END,
       CASE WHEN known THEN 0 END, CASE WHEN known THEN 0 END,
       CASE WHEN known THEN installed - allocated - unallocated - unhealthy - maintenance - reserved - free END,
       CASE WHEN known THEN owed END, delivered, CASE WHEN known THEN met END, sampled, used,
       CASE WHEN NOT known THEN missing END
FROM split
