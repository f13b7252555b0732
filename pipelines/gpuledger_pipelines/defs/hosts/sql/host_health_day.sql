-- The GPUs of each host by the condition that it is in, whether runs hold them or not. Only hosts that were installed
-- have rows.
WITH
day AS (
    SELECT day, start_s, least(end_s, :now_s) AS end_s
    FROM unnest(CAST(:days AS date[]), CAST(:starts AS bigint[]), CAST(:ends AS bigint[])) AS d (day, start_s, end_s)
    WHERE start_s < :now_s
),
-- include: capacity
,
-- Each condition of a host within each day, from when to when.
condition AS (
    SELECT day, host, state, milli, greatest(from_s, start_s) AS from_s, least(to_s, end_s) AS to_s
    FROM day
    JOIN host ON from_s < end_s AND to_s > start_s
),
told AS (
    SELECT day, host,
           sum(milli * (to_s - from_s))::bigint AS installed,
           coalesce(sum(milli * (to_s - from_s)) FILTER (WHERE state = 'healthy'), 0)::bigint AS healthy,
           coalesce(sum(milli * (to_s - from_s)) FILTER (WHERE state = 'reserved'), 0)::bigint AS reserved,
           coalesce(sum(milli * (to_s - from_s)) FILTER (WHERE state IN ('maintenance', 'draining')), 0)::bigint AS maintenance,
           coalesce(sum(milli * (to_s - from_s)) FILTER (WHERE state = 'unhealthy'), 0)::bigint AS unhealthy,
           -- How it stood at last: the worst of its parts.
           (array_agg(state ORDER BY to_s DESC,
                      array_position(ARRAY['unhealthy', 'draining', 'maintenance', 'reserved', 'healthy'], state)))[1] AS state
    FROM condition
    GROUP BY 1, 2
),
-- What runs held of the hosts that they name.
ran AS (
    SELECT day, part.host, sum(part.milli * (least(part.to_s, end_s) - greatest(part.from_s, start_s)))::bigint AS occupied
    FROM day
    JOIN part ON part.from_s < end_s AND part.to_s > start_s
    GROUP BY 1, 2
),
-- A failure is a moment at which more GPUs of a host are unhealthy than before; a condition that is only told anew,
-- or that the inventory begins with, is none.
trouble AS (
    SELECT host, floor(extract(epoch FROM at))::bigint AS at_s, sum(change) AS change
    FROM ledger_read.hosts
    CROSS JOIN LATERAL (VALUES (from_at, gpus), (to_at, -gpus)) AS edge (at, change)
    WHERE cluster = :cluster AND state = 'unhealthy' AND at IS NOT NULL
    GROUP BY 1, 2
),
installed AS (
    SELECT host, floor(extract(epoch FROM min(from_at)))::bigint AS since_s
    FROM ledger_read.hosts WHERE cluster = :cluster GROUP BY 1
),
failed AS (
    SELECT day, host, count(*) AS failures
    FROM trouble
    JOIN installed USING (host)
    JOIN day ON at_s >= start_s AND at_s < end_s
    WHERE change > 0 AND at_s > since_s
    GROUP BY 1, 2
)
INSERT INTO warehouse.host_health_day
    (cluster, day, host, state, installed_gpu_ms, healthy_gpu_ms, reserved_gpu_ms, maintenance_gpu_ms,
     unhealthy_gpu_ms, occupied_gpu_ms, failure_count)
SELECT :cluster, day, host, state, installed, healthy, reserved, maintenance, unhealthy,
       coalesce(occupied, 0), coalesce(failures, 0)
FROM told
LEFT JOIN ran USING (day, host)
LEFT JOIN failed USING (day, host)
