CREATE TABLE telemetry.handles (
	book TEXT NOT NULL,
	handle TEXT NOT NULL,
	workload TEXT NOT NULL,
	run TEXT NOT NULL,
	CONSTRAINT pk_handles PRIMARY KEY (book, handle, workload, run)
);
CREATE INDEX ix_handles_run ON telemetry.handles (book, workload, run);
COMMENT ON TABLE telemetry.handles IS 'what hosts call runs; a projection of the journal';
COMMENT ON COLUMN telemetry.handles.handle IS 'job/NUMBER, pod/UID or pod/NAMESPACE/NAME';
COMMENT ON COLUMN telemetry.buckets.workload IS 'empty when a host did not say which run, or no run held the GPU';
COMMENT ON COLUMN telemetry.buckets.run IS 'without a workload: the handle of the run, or empty when no run held the GPU';
GRANT SELECT, INSERT, UPDATE, DELETE ON telemetry.handles TO gpuledger_writer;

-- What the journal says already; from here on each batch adds its own.
INSERT INTO telemetry.handles (book, handle, workload, run)
    SELECT DISTINCT book, handle, workload, run
    FROM ledger.journal
    CROSS JOIN LATERAL regexp_replace(source, '^reconcile/', '') AS told (source)
    CROSS JOIN LATERAL unnest(CASE
        WHEN told.source LIKE 'slurm/%' THEN ARRAY['job/' || regexp_replace(workload, '-[^-]*$', '')]
        WHEN told.source LIKE 'kubernetes/%' AND workload LIKE '%/%/%' THEN ARRAY[
            'pod/' || substr(workload, length(split_part(workload, '/', 1) || split_part(workload, '/', 2)) + 3),
            'pod/' || split_part(workload, '/', 1) || '/' || split_part(workload, '/', 2)]
        WHEN told.source LIKE 'kubernetes/%' THEN ARRAY['pod/' || run]
    END) AS named (handle)
    WHERE type = 'workload.started';

-- Buckets with the runs that their handles stand for; what no known run had keeps its handle and has no workload.
-- Numbers and names are used again: of the runs of a handle the one has a bucket that began last before the bucket was
-- over, unless it ended before the bucket began. An estimated end may prove too early, so it is waited for as long as
-- samples may still come: a week.
CREATE VIEW telemetry.run_buckets AS
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
GRANT SELECT ON telemetry.run_buckets TO gpuledger_writer;

CREATE OR REPLACE VIEW ledger_read.buckets AS
    SELECT book AS cluster, bucket_at, gpu, workload, run, rung, sampled_gpu_ms, used_gpu_upms
    FROM telemetry.run_buckets;
