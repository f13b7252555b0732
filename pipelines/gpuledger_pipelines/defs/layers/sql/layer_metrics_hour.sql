-- The partition of the hour, and beside it the sums that the other layers are ratios of.
WITH
impact AS (
    SELECT hour_at, sum(owed_gpu_ms)::bigint AS owed, sum(delivered_gpu_ms)::bigint AS delivered,
           sum(CASE WHEN owed_gpu_ms IS NOT NULL THEN least(delivered_gpu_ms, owed_gpu_ms) END)::bigint AS met
    FROM warehouse.owed_hour
    WHERE cluster = :cluster AND hour_at >= to_timestamp(:from_s) AND hour_at < to_timestamp(:to_s)
    GROUP BY 1
),
sample AS (
    SELECT hour_at, sum(sampled_gpu_ms)::bigint AS sampled, sum(used_gpu_ms)::bigint AS used
    FROM warehouse.usage_hour
    WHERE cluster = :cluster AND hour_at >= to_timestamp(:from_s) AND hour_at < to_timestamp(:to_s)
    GROUP BY 1
),
state AS (
    SELECT * FROM warehouse.gpu_hour
    WHERE cluster = :cluster AND hour_at >= to_timestamp(:from_s) AND hour_at < to_timestamp(:to_s)
),
-- include: inventory
,
-- An hour in which somebody waited and nothing was installed has no states: none of it is in any.
hour AS (
    SELECT *, coalesce(hour_at >= since, false) AS known, CASE WHEN coalesce(hour_at >= since, false) THEN 0 END AS zero
    FROM state
    FULL JOIN impact USING (hour_at)
    FULL JOIN sample USING (hour_at)
    CROSS JOIN inventory
)
INSERT INTO warehouse.layer_metrics_hour
    (cluster, hour_at, installed_gpu_ms, unhealthy_gpu_ms, unhealthy_occupied_gpu_ms, maintenance_gpu_ms,
     allocated_gpu_ms, unallocated_gpu_ms, overhead_gpu_ms, reserved_gpu_ms, free_gpu_ms, lost_gpu_ms, unknown_gpu_ms,
     residual_gpu_ms, owed_gpu_ms, delivered_gpu_ms, hourly_met_gpu_ms, sampled_gpu_ms, used_gpu_ms, reason)
SELECT :cluster, hour_at,
       coalesce(installed_gpu_ms, zero), coalesce(unhealthy_gpu_ms, zero), coalesce(unhealthy_occupied_gpu_ms, zero),
       coalesce(maintenance_gpu_ms, zero), coalesce(allocated_gpu_ms, 0), coalesce(unallocated_gpu_ms, 0),
       coalesce(overhead_gpu_ms, zero), coalesce(reserved_gpu_ms, zero), coalesce(free_gpu_ms, zero),
       coalesce(lost_gpu_ms, zero), coalesce(unknown_gpu_ms, zero), coalesce(residual_gpu_ms, zero),
       CASE WHEN known THEN coalesce(owed, 0) END, coalesce(delivered, 0), CASE WHEN known THEN coalesce(met, 0) END,
       coalesce(sampled, 0), coalesce(used, 0), CASE WHEN NOT known THEN missing END
FROM hour
