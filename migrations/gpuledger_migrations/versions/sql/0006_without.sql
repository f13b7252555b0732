-- A reason that was put aside for a letter has nothing left that refers to it; the letter waits again.
DELETE FROM side.texts WHERE ref IN (SELECT discarded_ref FROM ledger.dead_letters);
DROP INDEX ledger.ix_dead_letters_waiting;
ALTER TABLE ledger.dead_letters
    DROP CONSTRAINT ck_dead_letters_one_end,
    DROP COLUMN cluster, DROP COLUMN discarded_at, DROP COLUMN discarded_by, DROP COLUMN discarded_ref;
ALTER TABLE ledger.stream_offsets DROP COLUMN published_at;
