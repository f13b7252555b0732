-- Gives run_sample (workload, run, bucket_at, account, class, user_token, sampled_gpu_ms, used_gpu_upms): five minutes of
-- a run by the gpu_util rung, all its GPUs together. They belong to whom the run belonged to when they ended.
run_bucket AS MATERIALIZED (
    SELECT workload, run, bucket_at, sum(sampled_gpu_ms)::bigint AS sampled_gpu_ms,
           sum(used_gpu_upms)::numeric AS used_gpu_upms
    FROM ledger_read.buckets
    WHERE cluster = :cluster AND rung = 'gpu_util'
      AND bucket_at >= to_timestamp(:from_s) AND bucket_at < to_timestamp(least(:to_s, :now_s))
    GROUP BY 1, 2, 3
),
-- Each part of a run is its owner's until the next part begins. The parts are looked up once a run, not once a sample.
run_owner AS MATERIALIZED (
    SELECT segment.workload, segment.run, segment.account, segment.class, segment.user_token, segment.from_at,
           lead(segment.from_at) OVER (PARTITION BY segment.workload, segment.run ORDER BY segment.from_at) AS next_at
    FROM (SELECT DISTINCT workload, run FROM run_bucket) AS named
    JOIN ledger_read.segments AS segment
        ON segment.cluster = :cluster AND segment.workload = named.workload AND segment.run = named.run
),
run_sample AS (
    SELECT sampled.workload, sampled.run, sampled.bucket_at, owner.account, owner.class, owner.user_token,
           sampled.sampled_gpu_ms, sampled.used_gpu_upms
    FROM run_bucket AS sampled
    JOIN run_owner AS owner
        ON owner.workload = sampled.workload AND owner.run = sampled.run
       AND owner.from_at < sampled.bucket_at + interval '5 minutes'
       AND (owner.next_at >= sampled.bucket_at + interval '5 minutes' OR owner.next_at IS NULL)
)
