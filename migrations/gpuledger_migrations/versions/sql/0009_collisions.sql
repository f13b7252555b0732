ALTER TABLE ledger.books ADD COLUMN collisions bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN ledger.books.collisions IS 'attempts given up for others';
