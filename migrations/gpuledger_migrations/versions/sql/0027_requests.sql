ALTER TABLE ledger.waits ADD COLUMN began_at TIMESTAMP WITH TIME ZONE;
COMMENT ON COLUMN ledger.waits.began_at IS 'since when it waits, where what it asks for was changed since';
CREATE INDEX ix_waits_began ON ledger.waits (book, began_at) WHERE began_at IS NOT NULL;

CREATE OR REPLACE VIEW ledger_read.waits AS
    SELECT book AS cluster, workload, account, gpus_milli, gpu_model, minimum_runtime_s, from_at, to_at, began_at
    FROM ledger.waits WHERE until_seq IS NULL;
CREATE OR REPLACE VIEW ledger_read.wait_versions AS
    SELECT book AS cluster, workload, account, gpus_milli, gpu_model, minimum_runtime_s, from_at, to_at, since_seq, until_seq,
           began_at
    FROM ledger.waits;
