-- Occupied GPU-time by account and class in buckets of 15 minutes UTC, with the samples of the gpu_util rung.
WITH span AS (
    -- Open runs count up to the run's present, and nothing counts beyond it.
    SELECT account, class AS kind, gpus_milli AS milli,
           greatest(floor(extract(epoch FROM from_at))::bigint, :from_s) AS from_s,
           least(coalesce(floor(extract(epoch FROM until_at))::bigint, :now_s), :to_s, :now_s) AS to_s
    FROM ledger_read.segments
    WHERE cluster = :cluster AND gpus_milli > 0
      AND from_at < to_timestamp(:to_s) AND (until_at IS NULL OR until_at > to_timestamp(:from_s))
),
-- include: integral
,
-- include: run_sample
,
sample AS (
    SELECT account, class AS kind, floor(extract(epoch FROM bucket_at))::bigint / :bucket_s * :bucket_s AS bucket_s,
           sum(sampled_gpu_ms)::bigint AS sampled_gpu_ms, sum(used_gpu_upms)::numeric AS used_gpu_upms
    FROM run_sample
    GROUP BY 1, 2, 3
)
INSERT INTO warehouse.usage_bucket (cluster, bucket_at, account, class, gpu_ms, sampled_gpu_ms, used_gpu_ms)
SELECT :cluster, to_timestamp(bucket_s), account, kind, coalesce(gpu_ms, 0), coalesce(sampled_gpu_ms, 0),
       -- gpu_ms x parts per million, to the nearest gpu_ms, half to even.
       coalesce(
           div(used_gpu_upms + 500000, 1000000)
               - (mod(used_gpu_upms, 1000000) = 500000 AND mod(div(used_gpu_upms, 1000000), 2) = 0)::int,
           0
       )::bigint
FROM integral
FULL JOIN sample USING (account, kind, bucket_s)
-- In the order of the index, into which it is then written without searching.
ORDER BY bucket_s, account, kind
