DROP INDEX ledger.ix_journal_job;
