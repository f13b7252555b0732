CREATE OR REPLACE VIEW telemetry.run_buckets AS
    SELECT b.book, b.bucket_at, b.gpu, coalesce(found.workload, b.workload) AS workload,
           coalesce(found.run, b.run) AS run, CASE WHEN b.workload = '' THEN nullif(b.run, '') END AS handle,
           b.rung, b.sampled_gpu_ms, b.used_gpu_upms
    FROM telemetry.buckets AS b
    LEFT JOIN LATERAL (
        SELECT s.workload, s.run
        FROM telemetry.handles AS h
        JOIN ledger.segments AS s
            ON s.book = h.book AND s.workload = h.workload AND s.run = h.run AND s.until_seq IS NULL
        WHERE b.workload = '' AND b.run <> '' AND h.book = b.book AND h.handle = b.run
          AND s.from_at < b.bucket_at + interval '5 minutes'
          AND (s.to_at > b.bucket_at OR s.to_at IS NULL OR (s.estimated AND s.to_at + interval '7 days' > b.bucket_at))
        ORDER BY s.from_at DESC, s.workload DESC, s.run DESC
        LIMIT 1
    ) AS found ON true;
