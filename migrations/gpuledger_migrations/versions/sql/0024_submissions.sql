-- The type is compared as an expression, so that a workload is looked up by its own index: the one of what was
-- submitted begins with the book alone, and before the planner has statistics it takes the two for equally good.
CREATE OR REPLACE VIEW ledger_read.submissions AS
    SELECT book AS cluster, workload, effective_at AS submitted_at
    FROM ledger.journal WHERE workload IS NOT NULL AND type || '' = 'workload.submitted';
