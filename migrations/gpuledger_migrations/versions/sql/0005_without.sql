DROP VIEW ledger_read.holds, ledger_read.books, ledger_read.periods, ledger_read.segments;
DROP INDEX ledger.ix_postings_day, ledger.ix_postings_settled;
DROP TABLE ledger.holds, ledger.lots, ledger.overdrafts;
-- A period that was closed without ever having been opened has no row before this revision.
DELETE FROM ledger.periods WHERE opened_seq IS NULL;
ALTER TABLE ledger.periods
    DROP COLUMN state, DROP COLUMN version, DROP COLUMN closing_seq, DROP COLUMN closed_seq,
    ALTER COLUMN opened_seq SET NOT NULL, ALTER COLUMN installed_gpu_ms SET NOT NULL;
ALTER TABLE ledger.stream_offsets DROP COLUMN end_position, DROP COLUMN seen_at;
ALTER TABLE ledger.books DROP COLUMN ticked_at;
ALTER TABLE ledger.segments DROP COLUMN capped_at;
DROP INDEX ledger.ix_segments_open;

CREATE VIEW ledger_read.segments AS
    SELECT book AS cluster, workload, run, account, class, user_token, gpus_milli, gpu_model, hosts,
           from_at, to_at, estimated
    FROM ledger.segments WHERE until_seq IS NULL;
CREATE VIEW ledger_read.periods AS SELECT book AS cluster, period, installed_gpu_ms FROM ledger.periods;
CREATE VIEW ledger_read.books AS SELECT book, last_seq, last_recorded_at FROM ledger.books;
GRANT SELECT ON ledger_read.segments, ledger_read.periods, ledger_read.books TO gpuledger_reader;
