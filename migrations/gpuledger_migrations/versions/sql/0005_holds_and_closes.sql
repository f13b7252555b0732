-- The book's own clock: open runs are charged up to here.
ALTER TABLE ledger.books ADD COLUMN ticked_at timestamptz;
COMMENT ON COLUMN ledger.books.ticked_at IS 'newest tick: open runs are charged up to here; null before the first';

ALTER TABLE ledger.segments ADD COLUMN capped_at timestamptz;
COMMENT ON COLUMN ledger.segments.capped_at IS 'while the run is open: its declared limit, beyond which nothing is charged';
CREATE INDEX ix_segments_open ON ledger.segments (book) WHERE until_seq IS NULL AND to_at IS NULL;

CREATE TABLE ledger.holds (
    id bigint GENERATED ALWAYS AS IDENTITY,
    book text NOT NULL,
    workload text NOT NULL,
    attempt bigint NOT NULL,
    from_at timestamptz NOT NULL,
    to_at timestamptz NOT NULL,
    account text NOT NULL,
    gpus_milli bigint NOT NULL,
    gpu_model text,
    run text,
    expires_at timestamptz,
    since_seq bigint NOT NULL,
    until_seq bigint,
    CONSTRAINT pk_holds PRIMARY KEY (id)
);
COMMENT ON TABLE ledger.holds IS 'GPU-time set aside by admissions, as windows of attempts';
COMMENT ON COLUMN ledger.holds.run IS 'the run that drains it; null while nothing has started';
COMMENT ON COLUMN ledger.holds.expires_at IS 'a start at or after this finds no hold';
CREATE INDEX ix_holds_current ON ledger.holds (book, to_at) WHERE until_seq IS NULL;
CREATE INDEX ix_holds_workload ON ledger.holds (book, workload);

CREATE TABLE ledger.lots (
    book text NOT NULL,
    account text NOT NULL,
    period text NOT NULL,
    name text NOT NULL,
    priority bigint,
    expires_on date,
    created_seq bigint NOT NULL,
    amount bigint NOT NULL,
    rollover text,
    CONSTRAINT pk_lots PRIMARY KEY (book, account, period, name)
);
COMMENT ON TABLE ledger.lots IS 'budget by origin: grants, what was received, what was carried over';
COMMENT ON COLUMN ledger.lots.name IS 'its origin within account and period, such as grant/12';
COMMENT ON COLUMN ledger.lots.expires_on IS 'first day on which it is gone; null for the end of the period';
COMMENT ON COLUMN ledger.lots.amount IS 'weighted gpu_ms; below zero for a debt that was carried over';
CREATE INDEX ix_lots_expiry ON ledger.lots (book, expires_on) WHERE expires_on IS NOT NULL;

CREATE TABLE ledger.overdrafts (
    account text NOT NULL,
    from_at timestamptz NOT NULL,
    overdraft text NOT NULL,
    set_seq bigint NOT NULL,
    CONSTRAINT pk_overdrafts PRIMARY KEY (account, from_at, set_seq)
);

ALTER TABLE ledger.periods ALTER COLUMN opened_seq DROP NOT NULL;
ALTER TABLE ledger.periods ALTER COLUMN installed_gpu_ms DROP NOT NULL;
ALTER TABLE ledger.periods ADD COLUMN state text NOT NULL DEFAULT 'open';
ALTER TABLE ledger.periods ADD COLUMN version bigint NOT NULL DEFAULT 0;
ALTER TABLE ledger.periods ADD COLUMN closing_seq bigint;
ALTER TABLE ledger.periods ADD COLUMN closed_seq bigint;
COMMENT ON COLUMN ledger.periods.state IS 'open, closing or closed';
COMMENT ON COLUMN ledger.periods.version IS 'closes begun so far';
COMMENT ON COLUMN ledger.periods.closing_seq IS 'the row that fixed what the last close is made of';
COMMENT ON COLUMN ledger.periods.closed_seq IS 'the row that settled it; null while it is open or closing';

ALTER TABLE ledger.stream_offsets ADD COLUMN end_position bigint, ADD COLUMN seen_at timestamptz;
COMMENT ON COLUMN ledger.stream_offsets.end_position IS 'where the stream ended when the worker looked; less the position: what waits';
COMMENT ON COLUMN ledger.stream_offsets.seen_at IS 'when the worker looked';

-- Serves settlements, which ask for days however late these were booked. Blocks of the history are mostly of few days.
CREATE INDEX ix_postings_day ON ledger.postings USING brin (effective_on);
CREATE INDEX ix_postings_settled ON ledger.postings (book, effective_on) WHERE code IN ('expiry', 'rollover');

GRANT SELECT, INSERT, UPDATE, DELETE ON ledger.holds, ledger.lots, ledger.overdrafts TO gpuledger_writer;

-- What SQL readers may see besides; until_at is the end, or the declared limit of a run that goes on.
CREATE OR REPLACE VIEW ledger_read.segments AS
    SELECT book AS cluster, workload, run, account, class, user_token, gpus_milli, gpu_model, hosts,
           from_at, to_at, estimated, coalesce(to_at, capped_at) AS until_at
    FROM ledger.segments WHERE until_seq IS NULL;
CREATE OR REPLACE VIEW ledger_read.periods AS
    SELECT book AS cluster, period, installed_gpu_ms, state, version FROM ledger.periods;
CREATE OR REPLACE VIEW ledger_read.books AS SELECT book, last_seq, last_recorded_at, ticked_at FROM ledger.books;
CREATE VIEW ledger_read.holds AS
    SELECT book AS cluster, workload, attempt, run, account, gpus_milli, gpu_model, from_at, to_at, expires_at
    FROM ledger.holds WHERE until_seq IS NULL;
GRANT SELECT ON ledger_read.holds TO gpuledger_reader;
