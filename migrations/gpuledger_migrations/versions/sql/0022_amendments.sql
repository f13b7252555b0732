-- Large journals may need longer than a migration is given otherwise.
SET LOCAL statement_timeout = 0;
CREATE INDEX ix_journal_amendment ON ledger.journal (book, effective_at, seq) WHERE type = 'allocation.amended';
ALTER TABLE ledger.policy_status ADD COLUMN amendments bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN ledger.policy_status.amendments IS 'of cycles, recorded so far';
