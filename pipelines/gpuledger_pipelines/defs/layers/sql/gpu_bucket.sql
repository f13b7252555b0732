-- The partition of installed GPU-time (law 9) in buckets of 15 minutes UTC. A host that a run holds is occupied
-- first of all, so only its empty GPUs are unhealthy, in maintenance or reserved: what runs held is taken off again.
-- Nothing is clamped: where more was occupied than installed, free is negative, and the gate names the bucket.
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
,
offered AS (
    SELECT to_timestamp(bucket_s) AS bucket_at,
           coalesce(sum(gpu_ms) FILTER (WHERE kind = 'installed'), 0)::bigint AS installed,
           coalesce(sum(gpu_ms) FILTER (WHERE kind = 'unhealthy'), 0)::bigint AS unhealthy,
           coalesce(sum(gpu_ms) FILTER (WHERE kind = 'unhealthy_occupied'), 0)::bigint AS unhealthy_occupied,
           coalesce(sum(gpu_ms) FILTER (WHERE kind = 'maintenance'), 0)::bigint AS maintenance,
           coalesce(sum(gpu_ms) FILTER (WHERE kind = 'reserved'), 0)::bigint AS reserved
    FROM integral
    GROUP BY 1
),
ran AS (
    SELECT bucket_at,
           coalesce(sum(gpu_ms) FILTER (WHERE class = 'allocated'), 0)::bigint AS allocated,
           coalesce(sum(gpu_ms) FILTER (WHERE class = 'unallocated'), 0)::bigint AS unallocated
    FROM warehouse.usage_bucket
    WHERE cluster = :cluster AND bucket_at >= to_timestamp(:from_s) AND bucket_at < to_timestamp(:to_s)
    GROUP BY 1
),
-- include: inventory
,
bucket AS (
    SELECT bucket_at, coalesce(bucket_at >= since, false) AS known, missing,
           coalesce(installed, 0) AS installed, coalesce(unhealthy, 0) AS unhealthy,
           coalesce(unhealthy_occupied, 0) AS unhealthy_occupied, coalesce(maintenance, 0) AS maintenance,
           coalesce(reserved, 0) AS reserved,
           coalesce(allocated, 0) AS allocated, coalesce(unallocated, 0) AS unallocated
    FROM offered
    FULL JOIN ran USING (bucket_at)
    CROSS JOIN inventory
),
split AS (
    SELECT *, installed - allocated - unallocated - unhealthy - maintenance - reserved AS free FROM bucket
)
INSERT INTO warehouse.gpu_bucket
    (cluster, bucket_at, installed_gpu_ms, unhealthy_gpu_ms, unhealthy_occupied_gpu_ms, maintenance_gpu_ms,
     allocated_gpu_ms, unallocated_gpu_ms, overhead_gpu_ms, reserved_gpu_ms, free_gpu_ms, lost_gpu_ms, unknown_gpu_ms,
     residual_gpu_ms, reason)
SELECT :cluster, bucket_at,
       CASE WHEN known THEN installed END, CASE WHEN known THEN unhealthy END,
       CASE WHEN known THEN unhealthy_occupied END, CASE WHEN known THEN maintenance END,
       allocated, unallocated,
       -- No source says prolog, epilog, silence or doubt yet: these states hold nothing.
       CASE WHEN known THEN 0 END, CASE WHEN known THEN reserved END, CASE WHEN known THEN free END,
       CASE WHEN known THEN 0 END, CASE WHEN known THEN 0 END,
       CASE WHEN known THEN installed - allocated - unallocated - unhealthy - maintenance - reserved - free END,
       CASE WHEN NOT known THEN missing END
FROM split
