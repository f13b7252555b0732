DROP VIEW ledger_read.waits, ledger_read.wait_versions;
CREATE VIEW ledger_read.waits AS
    SELECT book AS cluster, workload, account, gpus_milli, gpu_model, minimum_runtime_s, from_at, to_at
    FROM ledger.waits WHERE until_seq IS NULL;
CREATE VIEW ledger_read.wait_versions AS
    SELECT book AS cluster, workload, account, gpus_milli, gpu_model, minimum_runtime_s, from_at, to_at, since_seq, until_seq
    FROM ledger.waits;
GRANT SELECT ON ledger_read.waits, ledger_read.wait_versions TO gpuledger_reader;
ALTER TABLE ledger.waits DROP COLUMN began_at;
