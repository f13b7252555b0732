-- Large books may need longer than a migration is given otherwise.
SET LOCAL statement_timeout = 0;

-- One role owns everything, so that no login has to. It may make schemas in later migrations.
DO $$
DECLARE
    name text;
BEGIN
    EXECUTE format('GRANT CREATE ON DATABASE %I TO gpuledger_owner', current_database());
    FOREACH name IN ARRAY ARRAY['ledger', 'side', 'telemetry', 'warehouse', 'ledger_read'] LOOP
        EXECUTE format('ALTER SCHEMA %I OWNER TO gpuledger_owner', name);
    END LOOP;
    FOR name IN
        SELECT format(CASE c.relkind WHEN 'v' THEN 'VIEW %s' ELSE 'TABLE %s' END, c.oid::regclass)
        FROM pg_class AS c
        WHERE c.relkind IN ('r', 'v') AND c.relnamespace IN
            ('ledger'::regnamespace, 'side'::regnamespace, 'telemetry'::regnamespace, 'warehouse'::regnamespace,
             'ledger_read'::regnamespace)
    LOOP
        EXECUTE format('ALTER %s OWNER TO gpuledger_owner', name);
    END LOOP;
END $$;
ALTER FUNCTION ledger.refuse_change() OWNER TO gpuledger_owner;

SET LOCAL ROLE gpuledger_owner;

-- The history as it was, out of the way with its indexes and guards until it is copied.
CREATE SCHEMA ledger_whole;
ALTER TABLE ledger.journal SET SCHEMA ledger_whole;
ALTER TABLE ledger.postings SET SCHEMA ledger_whole;

CREATE TABLE ledger.journal (
	book TEXT NOT NULL,
	seq BIGINT NOT NULL,
	recorded_at TIMESTAMP WITH TIME ZONE NOT NULL,
	effective_at TIMESTAMP WITH TIME ZONE NOT NULL,
	type TEXT NOT NULL,
	source TEXT NOT NULL,
	event_id TEXT NOT NULL,
	digest BYTEA NOT NULL,
	workload TEXT,
	run TEXT,
	body JSON NOT NULL,
	extra_ref BYTEA,
	row_hash BYTEA NOT NULL,
	CONSTRAINT pk_journal PRIMARY KEY (book, seq, recorded_at)
) PARTITION BY RANGE (recorded_at);
CREATE INDEX ix_journal_type ON ledger.journal (book, type, seq) WHERE workload IS NULL;
CREATE INDEX ix_journal_workload ON ledger.journal (book, workload) WHERE workload IS NOT NULL;
COMMENT ON COLUMN ledger.journal.seq IS 'gapless from 1 within the book';
COMMENT ON COLUMN ledger.journal.recorded_at IS 'strictly increasing within the book';
COMMENT ON COLUMN ledger.journal.effective_at IS 'when it happened, whole seconds';
COMMENT ON COLUMN ledger.journal.type IS 'event type without prefix and version';
COMMENT ON COLUMN ledger.journal.digest IS 'of the bytes as they arrived (keyed where they name a user)';
COMMENT ON COLUMN ledger.journal.body IS 'the fact; users are tokens';
COMMENT ON COLUMN ledger.journal.extra_ref IS 'salted digest of keys kept in side.texts';
COMMENT ON COLUMN ledger.journal.row_hash IS 'SHA-256 over the previous hash, all columns and the postings';

CREATE TABLE ledger.postings (
	book TEXT NOT NULL,
	seq BIGINT NOT NULL,
	n INTEGER NOT NULL,
	recorded_at TIMESTAMP WITH TIME ZONE NOT NULL,
	code TEXT NOT NULL,
	commodity TEXT NOT NULL,
	amount BIGINT NOT NULL CONSTRAINT ck_postings_positive CHECK (amount > 0),
	debit_pot TEXT NOT NULL,
	debit_account TEXT NOT NULL,
	debit_period TEXT NOT NULL,
	credit_pot TEXT NOT NULL,
	credit_account TEXT NOT NULL,
	credit_period TEXT NOT NULL,
	workload TEXT,
	run TEXT,
	effective_on DATE NOT NULL,
	reverses_seq BIGINT,
	reason TEXT,
	CONSTRAINT pk_postings PRIMARY KEY (book, seq, n, recorded_at)
) PARTITION BY RANGE (recorded_at);
CREATE INDEX ix_postings_workload ON ledger.postings (book, workload) WHERE workload IS NOT NULL;
COMMENT ON COLUMN ledger.postings.seq IS 'the journal row that caused it';
COMMENT ON COLUMN ledger.postings.n IS 'from 1 within the journal row';
COMMENT ON COLUMN ledger.postings.recorded_at IS 'that of the journal row';
COMMENT ON COLUMN ledger.postings.code IS 'grant, charge, unallocated, ...';
COMMENT ON COLUMN ledger.postings.commodity IS 'gpu_ms (physical) or gpu_ms_weighted';
COMMENT ON COLUMN ledger.postings.effective_on IS 'day in the organisation''s zone';
COMMENT ON COLUMN ledger.postings.reverses_seq IS 'the newest journal row whose posting this corrects';
COMMENT ON COLUMN ledger.postings.reason IS 'why a correction was posted';

-- No key of a partitioned table can span its partitions without their key; an identity must.
CREATE TABLE ledger.identities (
	book TEXT NOT NULL,
	event_id TEXT NOT NULL,
	source TEXT NOT NULL,
	digest BYTEA NOT NULL,
	seq BIGINT NOT NULL,
	CONSTRAINT pk_identities PRIMARY KEY (book, event_id, source, digest)
);
COMMENT ON TABLE ledger.identities IS 'the identity of every journal row, unique in the book';
COMMENT ON COLUMN ledger.identities.seq IS 'the journal row';

-- Guards on rows pass on to every partition, guards against TRUNCATE do not.
CREATE TRIGGER append_only_rows BEFORE UPDATE OR DELETE ON ledger.journal
    FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change();
CREATE TRIGGER append_only_table BEFORE TRUNCATE ON ledger.journal
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change();
CREATE TRIGGER append_only_rows BEFORE UPDATE OR DELETE ON ledger.postings
    FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change();
CREATE TRIGGER append_only_table BEFORE TRUNCATE ON ledger.postings
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change();
CREATE TRIGGER append_only_rows BEFORE UPDATE OR DELETE ON ledger.identities
    FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change();
CREATE TRIGGER append_only_table BEFORE TRUNCATE ON ledger.identities
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change();
ALTER TABLE ledger.journal ENABLE ALWAYS TRIGGER append_only_rows;
ALTER TABLE ledger.journal ENABLE ALWAYS TRIGGER append_only_table;
ALTER TABLE ledger.postings ENABLE ALWAYS TRIGGER append_only_rows;
ALTER TABLE ledger.postings ENABLE ALWAYS TRIGGER append_only_table;
ALTER TABLE ledger.identities ENABLE ALWAYS TRIGGER append_only_rows;
ALTER TABLE ledger.identities ENABLE ALWAYS TRIGGER append_only_table;

-- Makes the partitions of the month of an instant and of the month after, where they are missing. It runs as
-- the owner, who alone may; ATTACH lets everybody read and write the parents meanwhile.
CREATE FUNCTION ledger.make_partitions(at timestamptz) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC'
AS $$
DECLARE
    parent text;
    part text;
    month timestamptz;
BEGIN
    -- Names do not tell 2027 from 2027 BC: a month that nothing is recorded in must not take the place of one.
    IF at IS NULL OR at < '1970-01-01' OR at >= '3000-01-01' THEN
        RAISE EXCEPTION 'nothing is recorded at %: refused', at USING HINT = 'check the clock';
    END IF;
    FOR month, parent IN
        SELECT date_trunc('month', at) + make_interval(months => ahead), name
        FROM generate_series(0, 1) AS ahead, unnest(ARRAY['journal', 'postings']) AS name
    LOOP
        part := parent || to_char(month, '_YYYY_MM');
        CONTINUE WHEN EXISTS (SELECT FROM pg_class WHERE relnamespace = 'ledger'::regnamespace AND relname = part);
        -- One at a time on the whole database; whoever waited finds it made (by a query: a look-up by name might
        -- still say what it said before).
        PERFORM pg_advisory_xact_lock(6102026, 4);
        CONTINUE WHEN EXISTS (SELECT FROM pg_class WHERE relnamespace = 'ledger'::regnamespace AND relname = part);
        EXECUTE format('CREATE TABLE ledger.%I (LIKE ledger.%I INCLUDING CONSTRAINTS INCLUDING INDEXES)', part, parent);
        EXECUTE format('CREATE TRIGGER append_only_table BEFORE TRUNCATE ON ledger.%I'
                       ' FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change()', part);
        EXECUTE format('ALTER TABLE ledger.%I ENABLE ALWAYS TRIGGER append_only_table', part);
        EXECUTE format('ALTER TABLE ledger.%I ATTACH PARTITION ledger.%I FOR VALUES FROM (%L) TO (%L)',
                       parent, part, month, month + interval '1 month');
        EXECUTE format('ALTER TABLE ledger.%I ENABLE ALWAYS TRIGGER append_only_rows', part);
    END LOOP;
END $$;
REVOKE ALL ON FUNCTION ledger.make_partitions(timestamptz) FROM PUBLIC;

-- Rights on the parents suffice: partitions are reached through them and carry none of their own.
GRANT SELECT, INSERT ON ledger.journal, ledger.postings, ledger.identities TO gpuledger_writer;
GRANT EXECUTE ON FUNCTION ledger.make_partitions(timestamptz) TO gpuledger_writer;

DO $$
DECLARE
    at timestamptz;
BEGIN
    FOR at IN
        SELECT DISTINCT date_trunc('month', recorded_at, 'UTC') FROM ledger_whole.journal
        UNION SELECT date_trunc('month', now(), 'UTC') ORDER BY 1
    LOOP
        PERFORM ledger.make_partitions(at);
    END LOOP;
END $$;
INSERT INTO ledger.journal
    (book, seq, recorded_at, effective_at, type, source, event_id, digest, workload, run, body, extra_ref, row_hash)
SELECT book, seq, recorded_at, effective_at, type, source, event_id, digest, workload, run, body, extra_ref, row_hash
FROM ledger_whole.journal ORDER BY book, seq;
INSERT INTO ledger.postings
    (book, seq, n, recorded_at, code, commodity, amount, debit_pot, debit_account, debit_period,
     credit_pot, credit_account, credit_period, workload, run, effective_on, reverses_seq, reason)
SELECT p.book, p.seq, p.n, j.recorded_at, p.code, p.commodity, p.amount, p.debit_pot, p.debit_account, p.debit_period,
       p.credit_pot, p.credit_account, p.credit_period, p.workload, p.run, p.effective_on, p.reverses_seq, p.reason
FROM ledger_whole.postings AS p JOIN ledger_whole.journal AS j USING (book, seq) ORDER BY p.book, p.seq, p.n;
INSERT INTO ledger.identities (book, event_id, source, digest, seq)
SELECT book, event_id, source, digest, seq FROM ledger_whole.journal ORDER BY book, seq;
DO $$
BEGIN
    IF (SELECT count(*) FROM ledger.postings) <> (SELECT count(*) FROM ledger_whole.postings) THEN
        RAISE EXCEPTION 'there are postings without a journal row'
            USING HINT = 'the history was changed: keep this database as it is and restore a copy that verifies';
    END IF;
END $$;
DROP SCHEMA ledger_whole CASCADE;
ANALYZE ledger.journal, ledger.postings, ledger.identities;

RESET ROLE;
