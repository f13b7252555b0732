-- Expects span (account, kind, milli, from_s, to_s) and :bucket_s; gives integral (account, kind, bucket_s, gpu_ms).
-- Nothing is expanded per bucket before it is summed: each end of a span changes a level, the level is carried
-- from bucket to bucket, and only the result has a row for every bucket that holds something.
edge AS (
    SELECT account, kind, from_s AS at_s, milli FROM span WHERE to_s > from_s
    UNION ALL
    SELECT account, kind, to_s, -milli FROM span WHERE to_s > from_s
),
-- What the edges inside a bucket add to that bucket, and to the level of every later one.
step AS (
    SELECT account, kind, at_s - at_s % :bucket_s AS bucket_s,
           sum(milli * (at_s - at_s % :bucket_s + :bucket_s - at_s)) AS inside,
           sum(milli) AS change
    FROM edge
    GROUP BY 1, 2, 3
),
level AS (
    SELECT account, kind, bucket_s, inside,
           sum(change) OVER series - change AS before,
           sum(change) OVER series AS after,
           lead(bucket_s) OVER series AS next_s
    FROM step
    WINDOW series AS (PARTITION BY account, kind ORDER BY bucket_s)
),
integral AS (
    SELECT account, kind, bucket_s, (before * :bucket_s + inside)::bigint AS gpu_ms
    FROM level
    WHERE before * :bucket_s + inside <> 0
    UNION ALL
    SELECT account, kind, later_s, (after * :bucket_s)::bigint
    FROM level
    CROSS JOIN LATERAL generate_series(bucket_s + :bucket_s, next_s - :bucket_s, :bucket_s) AS later (later_s)
    WHERE after <> 0
)
