ALTER TABLE ledger.hosts DROP COLUMN partial_use;
