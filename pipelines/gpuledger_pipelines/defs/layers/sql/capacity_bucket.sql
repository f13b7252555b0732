-- What the inventory offered in buckets of 15 minutes UTC. A host that a run holds is occupied first of all
-- (law 9), so only its empty GPUs are unhealthy or in maintenance: what runs held is taken off again.
WITH
-- include: capacity
,
span AS (
    SELECT '' AS account, 'installed' AS kind, milli, from_s, to_s FROM host
    UNION ALL
    SELECT '', CASE state WHEN 'draining' THEN 'maintenance' ELSE state END, milli, from_s, to_s
    FROM host WHERE state <> 'healthy'
    UNION ALL
    SELECT '', CASE state WHEN 'draining' THEN 'maintenance' ELSE state END, -milli, from_s, to_s FROM held
    UNION ALL
    SELECT '', 'unhealthy_occupied', milli, from_s, to_s FROM held WHERE state = 'unhealthy'
),
-- include: integral
INSERT INTO warehouse.capacity_bucket
    (cluster, bucket_at, installed_gpu_ms, unhealthy_gpu_ms, unhealthy_occupied_gpu_ms, maintenance_gpu_ms)
SELECT :cluster, to_timestamp(bucket_s),
       coalesce(sum(gpu_ms) FILTER (WHERE kind = 'installed'), 0)::bigint,
       coalesce(sum(gpu_ms) FILTER (WHERE kind = 'unhealthy'), 0)::bigint,
       coalesce(sum(gpu_ms) FILTER (WHERE kind = 'unhealthy_occupied'), 0)::bigint,
       coalesce(sum(gpu_ms) FILTER (WHERE kind = 'maintenance'), 0)::bigint
FROM integral
GROUP BY bucket_s
