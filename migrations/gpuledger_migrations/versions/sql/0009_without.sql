ALTER TABLE ledger.books DROP COLUMN collisions;
