-- The samples of a day, each with whose its run was when its five minutes ended, as the warehouse counts it. Rows of a
-- device follow each other, which packs best; the order is one that no collation of a database changes.
WITH
run_owner AS MATERIALIZED (
    SELECT segment.workload, segment.run, segment.account, segment.class, segment.from_at,
           lead(segment.from_at) OVER (PARTITION BY segment.workload, segment.run ORDER BY segment.from_at) AS next_at
    FROM (
        SELECT DISTINCT workload, run FROM ledger_read.buckets
        WHERE cluster = %(cluster)s AND workload <> ''
          AND bucket_at >= to_timestamp(%(from_s)s) AND bucket_at < to_timestamp(%(to_s)s)
    ) AS named
    JOIN ledger_read.segments AS segment
        ON segment.cluster = %(cluster)s AND segment.workload = named.workload AND segment.run = named.run
)
SELECT sampled.gpu, sampled.rung, floor(extract(epoch FROM sampled.bucket_at))::bigint, sampled.workload, sampled.run,
       owner.account, owner.class, sampled.sampled_gpu_ms, sampled.used_gpu_upms
FROM ledger_read.buckets AS sampled
LEFT JOIN run_owner AS owner
    ON owner.workload = sampled.workload AND owner.run = sampled.run
   AND owner.from_at < sampled.bucket_at + interval '5 minutes'
   AND (owner.next_at >= sampled.bucket_at + interval '5 minutes' OR owner.next_at IS NULL)
WHERE sampled.cluster = %(cluster)s
  AND sampled.bucket_at >= to_timestamp(%(from_s)s) AND sampled.bucket_at < to_timestamp(%(to_s)s)
ORDER BY sampled.gpu COLLATE "C", sampled.rung COLLATE "C", sampled.bucket_at, sampled.workload COLLATE "C",
         sampled.run COLLATE "C", sampled.sampled_gpu_ms, sampled.used_gpu_upms
