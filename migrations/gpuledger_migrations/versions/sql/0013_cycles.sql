CREATE INDEX ix_journal_cycle ON ledger.journal (book, effective_at, seq) WHERE type = 'allocation.issued';

CREATE TABLE ledger.cycle_decisions (
    book text NOT NULL,
    seq bigint NOT NULL,
    n integer NOT NULL,
    "of" integer NOT NULL,
    decided_at timestamptz NOT NULL,
    decisions bytea NOT NULL,
    CONSTRAINT pk_cycle_decisions PRIMARY KEY (book, seq, n)
);
COMMENT ON TABLE ledger.cycle_decisions IS 'every decision of recent cycles; those of older ones are had by replay';
COMMENT ON COLUMN ledger.cycle_decisions.seq IS 'the cycle''s row in the journal';
COMMENT ON COLUMN ledger.cycle_decisions.n IS 'CRC-32 of the workload modulo of';
COMMENT ON COLUMN ledger.cycle_decisions."of" IS 'among how many rows the cycle''s decisions lie';
COMMENT ON COLUMN ledger.cycle_decisions.decided_at IS 'the instant that the cycle decided for';
COMMENT ON COLUMN ledger.cycle_decisions.decisions IS '[place in the order, decision]: JSON, deflated';
-- They are deflated already.
ALTER TABLE ledger.cycle_decisions ALTER COLUMN decisions SET STORAGE EXTERNAL;
CREATE INDEX ix_cycle_decisions_decided ON ledger.cycle_decisions (book, decided_at);
GRANT SELECT, INSERT, DELETE ON ledger.cycle_decisions TO gpuledger_writer;

CREATE TABLE ledger.policy_status (
    book text NOT NULL,
    cycle text NOT NULL,
    decided_at timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL,
    took_ms bigint NOT NULL,
    cycles bigint NOT NULL,
    figures jsonb NOT NULL,
    CONSTRAINT pk_policy_status PRIMARY KEY (book)
);
COMMENT ON TABLE ledger.policy_status IS 'what the newest cycle of a cluster came to, for whoever watches';
COMMENT ON COLUMN ledger.policy_status.decided_at IS 'the instant that the newest cycle decided for';
COMMENT ON COLUMN ledger.policy_status.took_ms IS 'from reading the state to its record';
COMMENT ON COLUMN ledger.policy_status.cycles IS 'recorded so far';
COMMENT ON COLUMN ledger.policy_status.figures IS 'what the newest cycle counted';
GRANT SELECT, INSERT, UPDATE ON ledger.policy_status TO gpuledger_writer;
