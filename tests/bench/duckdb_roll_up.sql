-- What usage_bucket.sql says, in DuckDB over Parquet: the same rows in, the same rows out.
WITH span AS (
    SELECT account, class AS kind, gpus_milli AS milli, greatest(from_s, $from_s) AS from_s,
           least(coalesce(to_s, $to_s), $to_s) AS to_s
    FROM read_parquet($segments)
    WHERE gpus_milli > 0 AND from_s < $to_s AND (to_s IS NULL OR to_s > $from_s)
),
edge AS (
    SELECT account, kind, from_s AS at_s, milli FROM span WHERE to_s > from_s
    UNION ALL
    SELECT account, kind, to_s, -milli FROM span WHERE to_s > from_s
),
step AS (
    SELECT account, kind, at_s - at_s % 900 AS bucket_s, sum(milli * (900 - at_s % 900))::BIGINT AS inside,
           sum(milli)::BIGINT AS change
    FROM edge GROUP BY ALL
),
level AS (
    SELECT account, kind, bucket_s, inside, (sum(change) OVER series)::BIGINT - change AS before,
           (sum(change) OVER series)::BIGINT AS after, lead(bucket_s) OVER series AS next_s
    FROM step
    WINDOW series AS (PARTITION BY account, kind ORDER BY bucket_s)
),
integral AS (
    SELECT account, kind, bucket_s, before * 900 + inside AS gpu_ms FROM level WHERE before * 900 + inside <> 0
    UNION ALL
    SELECT account, kind, unnest(range(bucket_s + 900, next_s, 900)), after * 900 FROM level WHERE after <> 0
),
run_bucket AS (
    SELECT workload, run, at_s, sum(sampled_gpu_ms)::BIGINT AS sampled, sum(used_gpu_upms)::HUGEINT AS used
    FROM read_parquet($samples) WHERE at_s >= $from_s AND at_s < $to_s GROUP BY ALL
),
run_owner AS (
    SELECT workload, run, account, class, from_s,
           lead(from_s) OVER (PARTITION BY workload, run ORDER BY from_s) AS next_s
    FROM read_parquet($segments)
),
sample AS (
    SELECT account, class AS kind, at_s - at_s % 900 AS bucket_s, sum(sampled)::BIGINT AS sampled,
           sum(used)::HUGEINT AS used
    FROM run_bucket
    JOIN run_owner USING (workload, run)
    WHERE from_s < at_s + 300 AND (next_s IS NULL OR next_s >= at_s + 300)
    GROUP BY ALL
)
SELECT count(*), sum(coalesce(gpu_ms, 0))::BIGINT, sum(coalesce(sampled, 0))::BIGINT
FROM integral
FULL JOIN sample USING (account, kind, bucket_s)
