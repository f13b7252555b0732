-- A letter that can never be read stays as a row; who decided so is a token, and the words go to the side store.
ALTER TABLE ledger.dead_letters
    ADD COLUMN cluster text,
    ADD COLUMN discarded_at timestamptz,
    ADD COLUMN discarded_by text,
    ADD COLUMN discarded_ref bytea,
    ADD CONSTRAINT ck_dead_letters_one_end CHECK (resolved_at IS NULL OR discarded_at IS NULL);
COMMENT ON COLUMN ledger.dead_letters.cluster IS 'the cluster it is known to be of, if any';
COMMENT ON COLUMN ledger.dead_letters.discarded_at IS 'when somebody decided that nobody needs it';
COMMENT ON COLUMN ledger.dead_letters.discarded_by IS 'token of whoever decided so';
COMMENT ON COLUMN ledger.dead_letters.discarded_ref IS 'salted digest of the reason, which side.texts keeps';

-- What came by a stream before this revision says in its bytes of which cluster it is, where it says so at all.
UPDATE ledger.dead_letters SET cluster = substr(stream, length('import/') + strpos(substr(stream, 8), '/') + 1)
    WHERE stream LIKE 'import/%/%';

-- Serves lists, retries and counts of what waits.
CREATE INDEX ix_dead_letters_waiting ON ledger.dead_letters (id) WHERE resolved_at IS NULL AND discarded_at IS NULL;

ALTER TABLE ledger.stream_offsets ADD COLUMN published_at timestamptz;
COMMENT ON COLUMN ledger.stream_offsets.published_at IS 'when the newest record that was read had been published, where the broker says so';
