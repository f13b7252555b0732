-- Back to a journal and postings in one piece each, owned by whoever migrates.
SET LOCAL statement_timeout = 0;
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN
        SELECT format(CASE c.relkind WHEN 'v' THEN 'VIEW %s' ELSE 'TABLE %s' END, c.oid::regclass)
        FROM pg_class AS c
        WHERE c.relkind IN ('r', 'p', 'v') AND c.relnamespace IN
            ('ledger'::regnamespace, 'side'::regnamespace, 'telemetry'::regnamespace, 'warehouse'::regnamespace,
             'ledger_read'::regnamespace)
    LOOP
        EXECUTE format('ALTER %s OWNER TO CURRENT_USER', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['ledger', 'side', 'telemetry', 'warehouse', 'ledger_read'] LOOP
        EXECUTE format('ALTER SCHEMA %I OWNER TO CURRENT_USER', name);
    END LOOP;
    EXECUTE format('REVOKE CREATE ON DATABASE %I FROM gpuledger_owner', current_database());
END $$;
ALTER FUNCTION ledger.refuse_change() OWNER TO CURRENT_USER;

CREATE SCHEMA ledger_parts;
DO $$
DECLARE
    part regclass;
BEGIN
    FOR part IN
        SELECT inhrelid FROM pg_inherits
        WHERE inhparent IN ('ledger.journal'::regclass, 'ledger.postings'::regclass)
    LOOP
        EXECUTE format('ALTER TABLE %s SET SCHEMA ledger_parts', part);
    END LOOP;
END $$;
ALTER TABLE ledger.journal SET SCHEMA ledger_parts;
ALTER TABLE ledger.postings SET SCHEMA ledger_parts;

CREATE TABLE ledger.journal (LIKE ledger_parts.journal INCLUDING COMMENTS);
ALTER TABLE ledger.journal ADD CONSTRAINT pk_journal PRIMARY KEY (book, seq);
CREATE INDEX ix_journal_type ON ledger.journal (book, type, seq) WHERE workload IS NULL;
CREATE INDEX ix_journal_workload ON ledger.journal (book, workload) WHERE workload IS NOT NULL;
CREATE UNIQUE INDEX uq_journal_identity ON ledger.journal (book, event_id, source, digest);
INSERT INTO ledger.journal SELECT * FROM ledger_parts.journal ORDER BY book, seq;

CREATE TABLE ledger.postings (LIKE ledger_parts.postings INCLUDING CONSTRAINTS INCLUDING COMMENTS);
ALTER TABLE ledger.postings ADD CONSTRAINT pk_postings PRIMARY KEY (book, seq, n);
CREATE INDEX ix_postings_workload ON ledger.postings (book, workload) WHERE workload IS NOT NULL;
INSERT INTO ledger.postings SELECT * FROM ledger_parts.postings ORDER BY book, seq, n;
ALTER TABLE ledger.postings DROP COLUMN recorded_at;

CREATE TRIGGER append_only_rows BEFORE UPDATE OR DELETE ON ledger.journal
    FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change();
CREATE TRIGGER append_only_table BEFORE TRUNCATE ON ledger.journal
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change();
CREATE TRIGGER append_only_rows BEFORE UPDATE OR DELETE ON ledger.postings
    FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change();
CREATE TRIGGER append_only_table BEFORE TRUNCATE ON ledger.postings
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change();
ALTER TABLE ledger.journal ENABLE ALWAYS TRIGGER append_only_rows;
ALTER TABLE ledger.journal ENABLE ALWAYS TRIGGER append_only_table;
ALTER TABLE ledger.postings ENABLE ALWAYS TRIGGER append_only_rows;
ALTER TABLE ledger.postings ENABLE ALWAYS TRIGGER append_only_table;
GRANT SELECT, INSERT ON ledger.journal, ledger.postings TO gpuledger_writer;

DROP SCHEMA ledger_parts CASCADE;
DROP TABLE ledger.identities;
DROP FUNCTION ledger.make_partitions(timestamptz);
