ALTER TABLE ledger.policy_status DROP COLUMN amendments;
DROP INDEX ledger.ix_journal_amendment;
