ALTER TABLE ledger.hosts ADD COLUMN partial_use BOOLEAN DEFAULT false NOT NULL;
COMMENT ON COLUMN ledger.hosts.partial_use IS 'whether trouble of some devices leaves the others usable: then the host has a row for each state';
