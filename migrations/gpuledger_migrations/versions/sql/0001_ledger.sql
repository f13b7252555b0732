CREATE SCHEMA ledger;
CREATE SCHEMA side;
CREATE SCHEMA telemetry;

CREATE TABLE ledger.accounts (
	account TEXT NOT NULL, 
	path TEXT NOT NULL, 
	created_seq BIGINT NOT NULL, 
	CONSTRAINT pk_accounts PRIMARY KEY (account)
);
COMMENT ON COLUMN ledger.accounts.account IS 'immutable id: the path it was created under';
COMMENT ON COLUMN ledger.accounts.path IS 'the path in force';

CREATE TABLE ledger.balances (
	book TEXT NOT NULL, 
	commodity TEXT NOT NULL, 
	account TEXT NOT NULL, 
	period TEXT NOT NULL, 
	pot TEXT NOT NULL, 
	code TEXT NOT NULL, 
	amount BIGINT NOT NULL, 
	CONSTRAINT pk_balances PRIMARY KEY (book, commodity, account, period, pot, code)
);
COMMENT ON COLUMN ledger.balances.code IS 'movements of one kind; a pot''s balance is the sum over codes';
COMMENT ON COLUMN ledger.balances.amount IS 'credits minus debits';

CREATE TABLE ledger.books (
	book TEXT NOT NULL, 
	last_seq BIGINT NOT NULL, 
	head BYTEA NOT NULL, 
	last_recorded_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	CONSTRAINT pk_books PRIMARY KEY (book)
);
COMMENT ON TABLE ledger.books IS 'one row per book; its row lock is the book lock';
COMMENT ON COLUMN ledger.books.book IS 'cluster, or ~org';
COMMENT ON COLUMN ledger.books.last_seq IS 'sequence of the newest journal row; 0 for none';
COMMENT ON COLUMN ledger.books.head IS 'row_hash of the newest journal row';

CREATE TABLE ledger.dead_letters (
	id BIGINT GENERATED ALWAYS AS IDENTITY, 
	received_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	stream TEXT NOT NULL, 
	partition INTEGER NOT NULL, 
	position BIGINT NOT NULL, 
	place TEXT NOT NULL, 
	code TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	hint TEXT NOT NULL, 
	raw BYTEA NOT NULL, 
	raw_digest BYTEA NOT NULL, 
	context JSONB NOT NULL, 
	resolved_at TIMESTAMP WITH TIME ZONE, 
	CONSTRAINT pk_dead_letters PRIMARY KEY (id)
);
CREATE UNIQUE INDEX uq_dead_letters_place ON ledger.dead_letters (stream, partition, position, raw_digest);
COMMENT ON COLUMN ledger.dead_letters.stream IS 'topic, or import/SOURCE/CLUSTER';
COMMENT ON COLUMN ledger.dead_letters.position IS 'offset, or line number from 1';
COMMENT ON COLUMN ledger.dead_letters.place IS 'where a person finds it: path:line or topic[partition]@offset';
COMMENT ON COLUMN ledger.dead_letters.context IS 'what a retry needs besides the bytes';
COMMENT ON COLUMN ledger.dead_letters.resolved_at IS 'when a retry read it after all';

CREATE TABLE ledger.hosts (
	id BIGINT GENERATED ALWAYS AS IDENTITY, 
	book TEXT NOT NULL, 
	host TEXT NOT NULL, 
	gpus BIGINT NOT NULL, 
	gpu_model TEXT NOT NULL, 
	state TEXT NOT NULL, 
	from_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	to_at TIMESTAMP WITH TIME ZONE, 
	since_seq BIGINT NOT NULL, 
	until_seq BIGINT, 
	CONSTRAINT pk_hosts PRIMARY KEY (id)
);
CREATE INDEX ix_hosts_host ON ledger.hosts (book, host);
COMMENT ON TABLE ledger.hosts IS 'installed GPUs by host and health, as intervals';
COMMENT ON COLUMN ledger.hosts.state IS 'healthy, unhealthy, maintenance, draining';

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
	CONSTRAINT pk_journal PRIMARY KEY (book, seq)
);
CREATE INDEX ix_journal_type ON ledger.journal (book, type, seq) WHERE workload IS NULL;
CREATE INDEX ix_journal_workload ON ledger.journal (book, workload) WHERE workload IS NOT NULL;
CREATE UNIQUE INDEX uq_journal_identity ON ledger.journal (book, event_id, source, digest);
COMMENT ON COLUMN ledger.journal.seq IS 'gapless from 1 within the book';
COMMENT ON COLUMN ledger.journal.recorded_at IS 'strictly increasing within the book';
COMMENT ON COLUMN ledger.journal.effective_at IS 'when it happened, whole seconds';
COMMENT ON COLUMN ledger.journal.type IS 'event type without prefix and version';
COMMENT ON COLUMN ledger.journal.digest IS 'of the bytes as they arrived (keyed where they name a user)';
COMMENT ON COLUMN ledger.journal.body IS 'the fact; users are tokens';
COMMENT ON COLUMN ledger.journal.extra_ref IS 'salted digest of keys kept in side.texts';
COMMENT ON COLUMN ledger.journal.row_hash IS 'SHA-256 over the previous hash, all columns and the postings';

CREATE TABLE ledger.organisation (
	set_seq BIGINT NOT NULL, 
	timezone TEXT NOT NULL, 
	period TEXT NOT NULL, 
	CONSTRAINT pk_organisation PRIMARY KEY (set_seq)
);

CREATE TABLE ledger.outbox (
	id BIGINT GENERATED ALWAYS AS IDENTITY, 
	topic TEXT NOT NULL, 
	key TEXT NOT NULL, 
	value BYTEA NOT NULL, 
	published_at TIMESTAMP WITH TIME ZONE, 
	CONSTRAINT pk_outbox PRIMARY KEY (id)
);
CREATE INDEX ix_outbox_pending ON ledger.outbox (id) WHERE published_at IS NULL;

CREATE TABLE ledger.periods (
	book TEXT NOT NULL, 
	period TEXT NOT NULL, 
	opened_seq BIGINT NOT NULL, 
	installed_gpu_ms BIGINT NOT NULL, 
	CONSTRAINT pk_periods PRIMARY KEY (book, period)
);

CREATE TABLE ledger.postings (
	book TEXT NOT NULL, 
	seq BIGINT NOT NULL, 
	n INTEGER NOT NULL, 
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
	CONSTRAINT pk_postings PRIMARY KEY (book, seq, n)
);
CREATE INDEX ix_postings_workload ON ledger.postings (book, workload) WHERE workload IS NOT NULL;
COMMENT ON COLUMN ledger.postings.seq IS 'the journal row that caused it';
COMMENT ON COLUMN ledger.postings.n IS 'from 1 within the journal row';
COMMENT ON COLUMN ledger.postings.code IS 'grant, charge, unallocated, ...';
COMMENT ON COLUMN ledger.postings.commodity IS 'gpu_ms (physical) or gpu_ms_weighted';
COMMENT ON COLUMN ledger.postings.effective_on IS 'day in the organisation''s zone';
COMMENT ON COLUMN ledger.postings.reverses_seq IS 'the newest journal row whose posting this corrects';
COMMENT ON COLUMN ledger.postings.reason IS 'why a correction was posted';

CREATE TABLE ledger.segments (
	id BIGINT GENERATED ALWAYS AS IDENTITY, 
	book TEXT NOT NULL, 
	workload TEXT NOT NULL, 
	run TEXT NOT NULL, 
	account TEXT NOT NULL, 
	class TEXT NOT NULL, 
	user_token TEXT NOT NULL, 
	gpus_milli BIGINT NOT NULL, 
	gpu_model TEXT, 
	hosts TEXT[] NOT NULL, 
	from_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	to_at TIMESTAMP WITH TIME ZONE, 
	estimated BOOLEAN NOT NULL, 
	since_seq BIGINT NOT NULL, 
	until_seq BIGINT, 
	CONSTRAINT pk_segments PRIMARY KEY (id)
);
CREATE INDEX ix_segments_current ON ledger.segments (book, from_at) WHERE until_seq IS NULL;
CREATE INDEX ix_segments_workload ON ledger.segments (book, workload);
COMMENT ON COLUMN ledger.segments.to_at IS 'exclusive; null while the run is open';
COMMENT ON COLUMN ledger.segments.since_seq IS 'journal row from which the book says so';
COMMENT ON COLUMN ledger.segments.until_seq IS 'journal row from which the book says otherwise';

CREATE TABLE ledger.shares (
	account TEXT NOT NULL, 
	from_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	share BIGINT NOT NULL, 
	set_seq BIGINT NOT NULL, 
	CONSTRAINT pk_shares PRIMARY KEY (account, from_at, set_seq)
);
COMMENT ON COLUMN ledger.shares.set_seq IS 'sequence in ~org; the newest of one instant is in force';

CREATE TABLE ledger.stream_offsets (
	consumer TEXT NOT NULL, 
	stream TEXT NOT NULL, 
	partition INTEGER NOT NULL, 
	position BIGINT NOT NULL, 
	epoch BIGINT NOT NULL, 
	CONSTRAINT pk_stream_offsets PRIMARY KEY (consumer, stream, partition)
);
COMMENT ON COLUMN ledger.stream_offsets.position IS 'next position to read';
COMMENT ON COLUMN ledger.stream_offsets.epoch IS 'raised by each worker that takes over; older ones are fenced';

CREATE TABLE ledger.waits (
	id BIGINT GENERATED ALWAYS AS IDENTITY, 
	book TEXT NOT NULL, 
	workload TEXT NOT NULL, 
	account TEXT NOT NULL, 
	gpus_milli BIGINT NOT NULL, 
	gpu_model TEXT, 
	minimum_runtime_s BIGINT NOT NULL, 
	priority BIGINT NOT NULL, 
	submitted_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	from_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	to_at TIMESTAMP WITH TIME ZONE, 
	since_seq BIGINT NOT NULL, 
	until_seq BIGINT, 
	CONSTRAINT pk_waits PRIMARY KEY (id)
);
CREATE INDEX ix_waits_current ON ledger.waits (book, from_at) WHERE until_seq IS NULL;
CREATE INDEX ix_waits_workload ON ledger.waits (book, workload);
COMMENT ON TABLE ledger.waits IS 'intervals in which a workload was eligible to run and did not';
COMMENT ON COLUMN ledger.waits.from_at IS 'eligible from here on';
COMMENT ON COLUMN ledger.waits.to_at IS 'exclusive; null while it still waits';

CREATE TABLE side.texts (
	ref BYTEA NOT NULL, 
	salt BYTEA NOT NULL, 
	body BYTEA NOT NULL, 
	CONSTRAINT pk_texts PRIMARY KEY (ref)
);
COMMENT ON COLUMN side.texts.ref IS 'SHA-256 over salt and body';

CREATE TABLE side.user_keys (
	name TEXT NOT NULL, 
	key BYTEA NOT NULL, 
	token TEXT NOT NULL, 
	CONSTRAINT pk_user_keys PRIMARY KEY (name), 
	CONSTRAINT uq_user_keys_token UNIQUE (token)
);
COMMENT ON COLUMN side.user_keys.key IS 'random; erasing the row makes the token meaningless';

CREATE TABLE telemetry.buckets (
	book TEXT NOT NULL, 
	bucket_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	gpu TEXT NOT NULL, 
	workload TEXT NOT NULL, 
	run TEXT NOT NULL, 
	rung TEXT NOT NULL, 
	sampled_gpu_ms BIGINT NOT NULL, 
	used_gpu_upms BIGINT NOT NULL, 
	CONSTRAINT pk_buckets PRIMARY KEY (book, bucket_at, gpu, workload, run, rung)
);
COMMENT ON COLUMN telemetry.buckets.bucket_at IS 'start of five minutes';
COMMENT ON COLUMN telemetry.buckets.workload IS 'empty when no run held the GPU';
COMMENT ON COLUMN telemetry.buckets.rung IS 'gpu_util, gr_engine_active, sm_active or tensor_active';
COMMENT ON COLUMN telemetry.buckets.used_gpu_upms IS 'gpu_ms times parts per million of the rung';

CREATE TABLE telemetry.samples (
	book TEXT NOT NULL, 
	source TEXT NOT NULL, 
	event_id TEXT NOT NULL, 
	CONSTRAINT pk_samples PRIMARY KEY (book, source, event_id)
);
COMMENT ON TABLE telemetry.samples IS 'identities already counted';
