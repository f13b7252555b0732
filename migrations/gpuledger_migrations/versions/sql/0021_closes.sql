CREATE TABLE warehouse.close (
    cluster TEXT NOT NULL,
    period TEXT NOT NULL,
    version BIGINT NOT NULL,
    state TEXT NOT NULL,
    closing_seq BIGINT NOT NULL,
    closed_seq BIGINT,
    sealed_seq BIGINT,
    reopened_seq BIGINT,
    org_seq BIGINT NOT NULL,
    starts_at TIMESTAMP WITH TIME ZONE NOT NULL,
    ends_at TIMESTAMP WITH TIME ZONE NOT NULL,
    silent_sources BIGINT NOT NULL,
    unexplained_runs BIGINT,
    checks BIGINT,
    digest TEXT,
    document TEXT,
    frozen_at TIMESTAMP WITH TIME ZONE NOT NULL,
    sealed_at TIMESTAMP WITH TIME ZONE,
    published_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_close PRIMARY KEY (cluster, period, version)
);
COMMENT ON TABLE warehouse.close IS 'one row per version of the close of a period';
COMMENT ON COLUMN warehouse.close.cluster IS 'the cluster, which is also the book';
COMMENT ON COLUMN warehouse.close.period IS 'the budget period, such as 2026-11';
COMMENT ON COLUMN warehouse.close.version IS '1 for the first close of the period, one more after each reopening';
COMMENT ON COLUMN warehouse.close.state IS 'how far it has come: frozen, settled, validated, sealed, published; or reopened';
COMMENT ON COLUMN warehouse.close.closing_seq IS 'journal row that fixed what it is made of';
COMMENT ON COLUMN warehouse.close.closed_seq IS 'journal row that settled it; null before';
COMMENT ON COLUMN warehouse.close.sealed_seq IS 'journal row that holds the digest; null before';
COMMENT ON COLUMN warehouse.close.reopened_seq IS 'journal row from which it no longer holds; null while it does';
COMMENT ON COLUMN warehouse.close.org_seq IS 'newest journal row of ~org that it is made of';
COMMENT ON COLUMN warehouse.close.starts_at IS 'the period''s first instant';
COMMENT ON COLUMN warehouse.close.ends_at IS 'the period''s end, exclusive';
COMMENT ON COLUMN warehouse.close.silent_sources IS 'sources that had not told all up to the period''s end; a number';
COMMENT ON COLUMN warehouse.close.unexplained_runs IS 'runs that differ from the scheduler''s record without a cause; a number, null when nobody compared';
COMMENT ON COLUMN warehouse.close.checks IS 'expectations that held when it was validated; a number, null before';
COMMENT ON COLUMN warehouse.close.digest IS 'SHA-256 of the canonical file, hexadecimal; null until it is sealed';
COMMENT ON COLUMN warehouse.close.document IS 'the canonical file, byte for byte in UTF-8; null until it is sealed';
COMMENT ON COLUMN warehouse.close.frozen_at IS 'when the closing row was recorded';
COMMENT ON COLUMN warehouse.close.sealed_at IS 'when the sealed row was recorded; null before';
COMMENT ON COLUMN warehouse.close.published_at IS 'when its files were written last; null before';

CREATE TABLE warehouse.statement (
    cluster TEXT NOT NULL,
    period TEXT NOT NULL,
    version BIGINT NOT NULL,
    account TEXT NOT NULL,
    granted_gpu_ms_weighted BIGINT NOT NULL,
    rolled_in_gpu_ms_weighted BIGINT NOT NULL,
    transferred_gpu_ms_weighted BIGINT NOT NULL,
    credited_gpu_ms_weighted BIGINT NOT NULL,
    charged_gpu_ms_weighted BIGINT NOT NULL,
    held_gpu_ms_weighted BIGINT NOT NULL,
    expired_gpu_ms_weighted BIGINT NOT NULL,
    rolled_out_gpu_ms_weighted BIGINT NOT NULL,
    unallocated_gpu_ms_weighted BIGINT NOT NULL,
    left_gpu_ms_weighted BIGINT NOT NULL,
    allocated_gpu_ms BIGINT NOT NULL,
    unallocated_gpu_ms BIGINT NOT NULL,
    CONSTRAINT pk_statement PRIMARY KEY (cluster, period, version, account)
);
COMMENT ON TABLE warehouse.statement IS 'what a close sealed for each account; amounts by the period that they were booked into';
COMMENT ON COLUMN warehouse.statement.cluster IS 'the cluster, which is also the book';
COMMENT ON COLUMN warehouse.statement.period IS 'the budget period, such as 2026-11';
COMMENT ON COLUMN warehouse.statement.version IS '1 for the first close of the period, one more after each reopening';
COMMENT ON COLUMN warehouse.statement.account IS 'the leaf account, or ~own of an inner one';
COMMENT ON COLUMN warehouse.statement.granted_gpu_ms_weighted IS 'gpu_ms x per mille: given for the period';
COMMENT ON COLUMN warehouse.statement.rolled_in_gpu_ms_weighted IS 'gpu_ms x per mille: left by the period before, below zero for a debt';
COMMENT ON COLUMN warehouse.statement.transferred_gpu_ms_weighted IS 'gpu_ms x per mille: from other accounts, less what went to them';
COMMENT ON COLUMN warehouse.statement.credited_gpu_ms_weighted IS 'gpu_ms x per mille: given back for failures of hardware';
COMMENT ON COLUMN warehouse.statement.charged_gpu_ms_weighted IS 'gpu_ms x per mille: allocated time';
COMMENT ON COLUMN warehouse.statement.held_gpu_ms_weighted IS 'gpu_ms x per mille: set aside, neither charged nor released';
COMMENT ON COLUMN warehouse.statement.expired_gpu_ms_weighted IS 'gpu_ms x per mille: used by nobody, below zero by an overrun';
COMMENT ON COLUMN warehouse.statement.rolled_out_gpu_ms_weighted IS 'gpu_ms x per mille: that part of it that went into the next period, below zero for a debt';
COMMENT ON COLUMN warehouse.statement.unallocated_gpu_ms_weighted IS 'gpu_ms x per mille: free time, charged to nobody';
COMMENT ON COLUMN warehouse.statement.left_gpu_ms_weighted IS 'gpu_ms x per mille: left in the budget, 0 once it is settled';
COMMENT ON COLUMN warehouse.statement.allocated_gpu_ms IS 'gpu_ms: allocated time of GPUs, whatever the model weighs';
COMMENT ON COLUMN warehouse.statement.unallocated_gpu_ms IS 'gpu_ms: free time of GPUs, whatever the model weighs';

GRANT USAGE ON SCHEMA warehouse TO gpuledger_writer;
GRANT SELECT, INSERT, UPDATE, DELETE ON warehouse.close, warehouse.statement TO gpuledger_writer;
GRANT SELECT ON warehouse.close, warehouse.statement TO gpuledger_reader;
