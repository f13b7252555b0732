DROP TABLE ledger.policy_status;
DROP TABLE ledger.cycle_decisions;
DROP INDEX ledger.ix_journal_cycle;
