CREATE INDEX ix_journal_job ON ledger.journal (book, split_part(workload, '-', 1)) WHERE type = 'workload.submitted';
