-- Allocated time and what became of it, by account and person. A run is idle in five minutes in which all its GPUs
-- together are used below a threshold; it squats while it is idle for longer than it may. What has no sample is
-- unknown: it is neither idle nor used, and ends a stretch.
WITH
day AS (
    SELECT day, to_timestamp(start_s) AS start_at, to_timestamp(end_s) AS end_at, start_s, least(end_s, :now_s) AS end_s
    FROM unnest(CAST(:days AS date[]), CAST(:starts AS bigint[]), CAST(:ends AS bigint[])) AS d (day, start_s, end_s)
    WHERE start_s < :now_s
),
-- include: run_sample
,
-- Beside its neighbours within a stretch of idle five minutes: the number of the sample and that of the moment both
-- rise by one, so that their difference names the stretch.
stretched AS (
    SELECT *, extract(epoch FROM bucket_at)::bigint / 300
                  - row_number() OVER (PARTITION BY workload, run ORDER BY bucket_at) AS stretch
    FROM run_sample
    WHERE class = 'allocated' AND used_gpu_upms < CAST(:idle_below_ppm AS bigint) * sampled_gpu_ms
),
-- A stretch lasts from its first five minutes to its last, and not beyond the run.
squatting AS (
    SELECT workload, run, stretch
    FROM (
        SELECT workload, run, stretch, min(bucket_at) AS from_at, max(bucket_at) + interval '5 minutes' AS to_at
        FROM stretched GROUP BY 1, 2, 3
    ) AS idle
    CROSS JOIN LATERAL (
        SELECT min(segment.from_at) AS began_at,
               max(coalesce(segment.until_at, to_timestamp(:now_s))) AS ended_at
        FROM ledger_read.segments AS segment
        WHERE segment.cluster = :cluster AND segment.workload = idle.workload AND segment.run = idle.run
    ) AS held
    WHERE least(to_at, ended_at) - greatest(from_at, began_at) > CAST(:squatted_after_s AS bigint) * interval '1 second'
),
sampled AS (
    SELECT day, account, user_token, sum(sampled_gpu_ms)::bigint AS sampled, sum(used_gpu_upms) AS used_upms,
           coalesce(sum(sampled_gpu_ms) FILTER (WHERE used_gpu_upms < CAST(:idle_below_ppm AS bigint) * sampled_gpu_ms), 0)::bigint AS idle,
           coalesce(sum(sampled_gpu_ms) FILTER (
               WHERE used_gpu_upms >= CAST(:idle_below_ppm AS bigint) * sampled_gpu_ms
                 AND used_gpu_upms < CAST(:low_below_ppm AS bigint) * sampled_gpu_ms), 0)::bigint AS low
    FROM day
    JOIN run_sample ON bucket_at >= start_at AND bucket_at < end_at
    WHERE class = 'allocated'
    GROUP BY 1, 2, 3
),
squatted AS (
    SELECT day, account, user_token, sum(sampled_gpu_ms)::bigint AS squatted, count(DISTINCT (workload, run)) AS runs
    FROM day
    JOIN stretched ON bucket_at >= start_at AND bucket_at < end_at
    JOIN squatting USING (workload, run, stretch)
    GROUP BY 1, 2, 3
),
held AS (
    SELECT day, account, user_token, sum(
               gpus_milli * (least(coalesce(floor(extract(epoch FROM until_at))::bigint, end_s), end_s)
                             - greatest(floor(extract(epoch FROM from_at))::bigint, start_s)))::bigint AS allocated
    FROM day
    JOIN ledger_read.segments
        ON cluster = :cluster AND class = 'allocated' AND gpus_milli > 0
       AND from_at < to_timestamp(end_s) AND (until_at IS NULL OR until_at > start_at)
    GROUP BY 1, 2, 3
)
INSERT INTO warehouse.waste_day
    (cluster, day, account, user_token, allocated_gpu_ms, sampled_gpu_ms, used_gpu_ms, idle_gpu_ms, squatted_gpu_ms,
     low_gpu_ms, squatting_run_count)
SELECT :cluster, day, account, user_token, coalesce(allocated, 0), coalesce(sampled, 0),
       -- gpu_ms x parts per million, to the nearest gpu_ms, half to even.
       coalesce(
           div(used_upms + 500000, 1000000)
               - (mod(used_upms, 1000000) = 500000 AND mod(div(used_upms, 1000000), 2) = 0)::int,
           0
       )::bigint,
       coalesce(idle, 0), coalesce(squatted, 0), coalesce(low, 0), coalesce(runs, 0)
FROM held
FULL JOIN sampled USING (day, account, user_token)
LEFT JOIN squatted USING (day, account, user_token)
