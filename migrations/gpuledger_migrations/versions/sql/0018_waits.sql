-- Multiplies whole numbers exactly, also as a running product; PostgreSQL has no such aggregate.
CREATE AGGREGATE warehouse.product (numeric) (SFUNC = numeric_mul, STYPE = numeric);

CREATE TABLE warehouse.queue_wait_day (
    cluster TEXT NOT NULL,
    day DATE NOT NULL,
    account TEXT NOT NULL,
    class TEXT NOT NULL,
    size TEXT NOT NULL,
    turn TEXT NOT NULL,
    request_count BIGINT NOT NULL,
    started_count BIGINT NOT NULL,
    at_once_count BIGINT NOT NULL,
    waiting_count BIGINT NOT NULL,
    withdrawn_count BIGINT NOT NULL,
    p50_s BIGINT,
    p90_s BIGINT,
    p99_s BIGINT,
    longest_s BIGINT NOT NULL,
    started_after_s BIGINT[] NOT NULL,
    unstarted_for_s BIGINT[] NOT NULL,
    as_of_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_queue_wait_day PRIMARY KEY (cluster, day, account, class, size, turn)
);
COMMENT ON TABLE warehouse.queue_wait_day IS 'how long requests waited; quantiles are estimates that count who has not started (Kaplan and Meier)';
COMMENT ON COLUMN warehouse.queue_wait_day.cluster IS 'the cluster, which is also the book';
COMMENT ON COLUMN warehouse.queue_wait_day.day IS 'day of the organisation''s zone on which the request could first run';
COMMENT ON COLUMN warehouse.queue_wait_day.account IS 'path of the account that it counts under';
COMMENT ON COLUMN warehouse.queue_wait_day."class" IS 'allocated or unallocated: of the run, or without one as it was asked for';
COMMENT ON COLUMN warehouse.queue_wait_day.size IS 'GPUs asked for: <1, 1, 2, 3-4, 5-8 and so on';
COMMENT ON COLUMN warehouse.queue_wait_day.turn IS 'first, or again: after a run of the workload had been stopped';
COMMENT ON COLUMN warehouse.queue_wait_day.request_count IS 'requests that began to wait';
COMMENT ON COLUMN warehouse.queue_wait_day.started_count IS 'those that got their GPUs';
COMMENT ON COLUMN warehouse.queue_wait_day.at_once_count IS 'those of them that got them in the second in which they could first run';
COMMENT ON COLUMN warehouse.queue_wait_day.waiting_count IS 'those that waited still at as_of_at';
COMMENT ON COLUMN warehouse.queue_wait_day.withdrawn_count IS 'those that ended without GPUs';
COMMENT ON COLUMN warehouse.queue_wait_day.p50_s IS 'seconds within which half have started; null: not known yet';
COMMENT ON COLUMN warehouse.queue_wait_day.p90_s IS 'seconds within which nine in ten have started; null: not known yet';
COMMENT ON COLUMN warehouse.queue_wait_day.p99_s IS 'seconds within which 99 in 100 have started; null: not known yet';
COMMENT ON COLUMN warehouse.queue_wait_day.longest_s IS 'seconds of the longest wait so far, over or not';
COMMENT ON COLUMN warehouse.queue_wait_day.started_after_s IS 'seconds, ascending: each wait that ended in a start; those of several rows are put together';
COMMENT ON COLUMN warehouse.queue_wait_day.unstarted_for_s IS 'seconds, ascending: how long each other request was seen to wait';
COMMENT ON COLUMN warehouse.queue_wait_day.as_of_at IS 'who waits still was counted up to here';

GRANT SELECT ON warehouse.queue_wait_day TO gpuledger_reader;

-- A run that was never submitted has no wait, and one that started at once has none either: this tells them apart.
CREATE VIEW ledger_read.submissions AS
    SELECT book AS cluster, workload, effective_at AS submitted_at
    FROM ledger.journal WHERE workload IS NOT NULL AND type = 'workload.submitted';
GRANT SELECT ON ledger_read.submissions TO gpuledger_reader;
