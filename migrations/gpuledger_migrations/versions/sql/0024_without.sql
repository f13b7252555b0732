CREATE OR REPLACE VIEW ledger_read.submissions AS
    SELECT book AS cluster, workload, effective_at AS submitted_at
    FROM ledger.journal WHERE workload IS NOT NULL AND type = 'workload.submitted';
