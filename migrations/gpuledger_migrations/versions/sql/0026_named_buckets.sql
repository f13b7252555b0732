-- As before, in two parts: samples whose run their host named are what they are, and only those of a handle are looked up.
-- In one part each row of millions went through a look-up that could not find anything.
CREATE OR REPLACE VIEW telemetry.run_buckets AS
    SELECT book, bucket_at, gpu, workload, run, NULL::text AS handle, rung, sampled_gpu_ms, used_gpu_upms
    FROM telemetry.buckets
    WHERE workload <> '' OR run = ''
    UNION ALL
    SELECT b.book, b.bucket_at, b.gpu, coalesce(found.workload, b.workload), coalesce(found.run, b.run), b.run,
           b.rung, b.sampled_gpu_ms, b.used_gpu_upms
    FROM telemetry.buckets AS b
    LEFT JOIN LATERAL (
        SELECT s.workload, s.run
        FROM telemetry.handles AS h
        JOIN ledger.segments AS s
            ON s.book = h.book AND s.workload = h.workload AND s.run = h.run AND s.until_seq IS NULL
        WHERE h.book = b.book AND h.handle = b.run
          AND s.from_at < b.bucket_at + interval '5 minutes'
          AND (s.to_at > b.bucket_at OR s.to_at IS NULL OR (s.estimated AND s.to_at + interval '7 days' > b.bucket_at))
        ORDER BY s.from_at DESC, s.workload DESC, s.run DESC
        LIMIT 1
    ) AS found ON true
    WHERE b.workload = '' AND b.run <> '';
