CREATE TABLE ledger.watermarks (
    book text NOT NULL,
    source text NOT NULL,
    told_until_at timestamptz NOT NULL,
    CONSTRAINT pk_watermarks PRIMARY KEY (book, source)
);
COMMENT ON TABLE ledger.watermarks IS 'up to when each source has told all it knows: its newest heartbeat';
GRANT SELECT, INSERT, UPDATE, DELETE ON ledger.watermarks TO gpuledger_writer;

INSERT INTO ledger.watermarks (book, source, told_until_at)
    SELECT book, source, max(effective_at) FROM ledger.journal
    WHERE workload IS NULL AND type = 'source.heartbeat' GROUP BY book, source;

CREATE VIEW ledger_read.watermarks AS SELECT book AS cluster, source, told_until_at FROM ledger.watermarks;
GRANT SELECT ON ledger_read.watermarks TO gpuledger_reader;
