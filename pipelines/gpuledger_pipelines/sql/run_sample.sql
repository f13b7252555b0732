-- Gives run_sample (workload, run, bucket_at, account, class, user_token, sampled_gpu_ms, used_gpu_upms): five minutes of
-- a run by the gpu_util rung, all its GPUs together. They belong to whom the run belonged to when they ended.
run_sample AS (
    SELECT sampled.workload, sampled.run, sampled.bucket_at, owner.account, owner.class, owner.user_token,
           sampled.sampled_gpu_ms, sampled.used_gpu_upms
    FROM (
        SELECT workload, run, bucket_at, sum(sampled_gpu_ms)::bigint AS sampled_gpu_ms,
               sum(used_gpu_upms)::numeric AS used_gpu_upms
        FROM ledger_read.buckets
        WHERE cluster = :cluster AND rung = 'gpu_util'
          AND bucket_at >= to_timestamp(:from_s) AND bucket_at < to_timestamp(least(:to_s, :now_s))
        GROUP BY 1, 2, 3
    ) AS sampled
    CROSS JOIN LATERAL (
        SELECT segment.account, segment.class, segment.user_token
        FROM ledger_read.segments AS segment
        WHERE segment.cluster = :cluster
          AND segment.workload = sampled.workload AND segment.run = sampled.run
          AND segment.from_at < sampled.bucket_at + interval '5 minutes'
        ORDER BY segment.from_at DESC
        LIMIT 1
    ) AS owner
)
