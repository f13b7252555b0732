-- What the book said from one journal row on until another: pipelines ask it which days a late fact touches.
CREATE VIEW ledger_read.segment_versions AS
    SELECT book AS cluster, workload, run, account, class, user_token, gpus_milli, hosts, from_at,
           coalesce(to_at, capped_at) AS until_at, since_seq, until_seq
    FROM ledger.segments;
CREATE VIEW ledger_read.wait_versions AS
    SELECT book AS cluster, workload, account, gpus_milli, gpu_model, minimum_runtime_s, from_at, to_at, since_seq, until_seq
    FROM ledger.waits;
CREATE VIEW ledger_read.host_versions AS
    SELECT book AS cluster, host, gpus, gpu_model, state, from_at, to_at, since_seq, until_seq
    FROM ledger.hosts;
CREATE VIEW ledger_read.share_versions AS SELECT account, share, from_at, set_seq FROM ledger.shares;
-- An hour of samples, by its end; samples that come late make a further seal.
CREATE VIEW ledger_read.seals AS
    SELECT book AS cluster, seq, effective_at AS hour_end_at
    FROM ledger.journal WHERE workload IS NULL AND type = 'telemetry.sealed';
CREATE VIEW ledger_read.asked AS
    SELECT book AS cluster, seq, workload
    FROM ledger.journal WHERE workload IS NOT NULL AND type || '' = 'workload.submitted';
CREATE VIEW ledger_read.posted AS
    SELECT book AS cluster, seq, credit_period AS period FROM ledger.postings
    UNION ALL
    SELECT book, seq, debit_period FROM ledger.postings WHERE debit_period <> credit_period;
GRANT SELECT ON ledger_read.segment_versions, ledger_read.wait_versions, ledger_read.host_versions,
    ledger_read.share_versions, ledger_read.seals, ledger_read.asked, ledger_read.posted TO gpuledger_reader;

-- Serve the same question: of rows that are mostly old, those that are in force, or no longer, since a journal row.
CREATE INDEX ix_segments_since ON ledger.segments USING brin (since_seq, until_seq);
CREATE INDEX ix_waits_since ON ledger.waits USING brin (since_seq, until_seq);
