ALTER TABLE ledger.hosts ADD COLUMN partial_use BOOLEAN DEFAULT false NOT NULL;
