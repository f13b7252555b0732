-- Law 1: history is never changed, not even by the owner.
CREATE FUNCTION ledger.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%.% is append only: % refused', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_OP
        USING HINT = 'corrections are new postings that name what they reverse and why';
END $$;

CREATE TRIGGER append_only_rows BEFORE UPDATE OR DELETE ON ledger.journal
    FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change();
CREATE TRIGGER append_only_table BEFORE TRUNCATE ON ledger.journal
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change();
CREATE TRIGGER append_only_rows BEFORE UPDATE OR DELETE ON ledger.postings
    FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change();
CREATE TRIGGER append_only_table BEFORE TRUNCATE ON ledger.postings
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change();
-- ALWAYS: fire for replication sessions too.
ALTER TABLE ledger.journal ENABLE ALWAYS TRIGGER append_only_rows;
ALTER TABLE ledger.journal ENABLE ALWAYS TRIGGER append_only_table;
ALTER TABLE ledger.postings ENABLE ALWAYS TRIGGER append_only_rows;
ALTER TABLE ledger.postings ENABLE ALWAYS TRIGGER append_only_table;

-- Roles belong to the whole server, so another database may have made them already.
DO $$
BEGIN
    CREATE ROLE gpuledger_writer NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
DO $$
BEGIN
    CREATE ROLE gpuledger_reader NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;

GRANT USAGE ON SCHEMA ledger, side, telemetry TO gpuledger_writer;
GRANT SELECT, INSERT ON ledger.journal, ledger.postings TO gpuledger_writer;
GRANT SELECT, INSERT, UPDATE, DELETE ON
    ledger.books, ledger.balances, ledger.segments, ledger.waits, ledger.hosts, ledger.accounts, ledger.shares,
    ledger.organisation, ledger.periods, ledger.stream_offsets, ledger.dead_letters, ledger.outbox,
    side.user_keys, side.texts, telemetry.samples, telemetry.buckets
    TO gpuledger_writer;
-- Which role may act as the writer is the owner's decision: GRANT gpuledger_writer TO <login>.
GRANT gpuledger_writer, gpuledger_reader TO CURRENT_USER;

-- What pipelines may read. Current knowledge; a view's columns are a published interface.
CREATE SCHEMA ledger_read;
CREATE VIEW ledger_read.segments AS
    SELECT book AS cluster, workload, run, account, class, user_token, gpus_milli, gpu_model, hosts,
           from_at, to_at, estimated
    FROM ledger.segments WHERE until_seq IS NULL;
CREATE VIEW ledger_read.waits AS
    SELECT book AS cluster, workload, account, gpus_milli, gpu_model, minimum_runtime_s, from_at, to_at
    FROM ledger.waits WHERE until_seq IS NULL;
CREATE VIEW ledger_read.hosts AS
    SELECT book AS cluster, host, gpus, gpu_model, state, from_at, to_at
    FROM ledger.hosts WHERE until_seq IS NULL;
CREATE VIEW ledger_read.accounts AS SELECT account, path FROM ledger.accounts;
-- The share in force over [from_at, to_at); of several set for one instant the last one counts.
CREATE VIEW ledger_read.shares AS
    SELECT account, share, from_at, lead(from_at) OVER (PARTITION BY account ORDER BY from_at) AS to_at
    FROM (SELECT DISTINCT ON (account, from_at) account, from_at, share
          FROM ledger.shares ORDER BY account, from_at, set_seq DESC) AS newest;
CREATE VIEW ledger_read.balances AS
    SELECT book AS cluster, commodity, account, period, pot, code, amount FROM ledger.balances;
CREATE VIEW ledger_read.periods AS SELECT book AS cluster, period, installed_gpu_ms FROM ledger.periods;
CREATE VIEW ledger_read.buckets AS
    SELECT book AS cluster, bucket_at, gpu, workload, run, rung, sampled_gpu_ms, used_gpu_upms
    FROM telemetry.buckets;
CREATE VIEW ledger_read.organisation AS
    SELECT timezone, period FROM ledger.organisation ORDER BY set_seq DESC LIMIT 1;
CREATE VIEW ledger_read.books AS SELECT book, last_seq, last_recorded_at FROM ledger.books;

GRANT USAGE ON SCHEMA ledger_read TO gpuledger_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA ledger_read TO gpuledger_reader;
