CREATE SCHEMA notify;
CREATE TABLE notify.notices (
    id text NOT NULL,
    kind text NOT NULL,
    cluster text,
    account text,
    body text NOT NULL,
    is_overtaken boolean NOT NULL,
    noticed_at timestamptz NOT NULL,
    CONSTRAINT pk_notices PRIMARY KEY (id)
);
CREATE TABLE notify.deliveries (
    notice text NOT NULL,
    target text NOT NULL,
    state text NOT NULL,
    attempts bigint NOT NULL,
    next_at timestamptz NOT NULL,
    sent_at timestamptz,
    said text,
    CONSTRAINT pk_deliveries PRIMARY KEY (notice, target),
    CONSTRAINT fk_deliveries_notice FOREIGN KEY (notice) REFERENCES notify.notices (id),
    CONSTRAINT ck_deliveries_state CHECK (state IN ('due', 'sent', 'given_up'))
);
CREATE INDEX ix_deliveries_due ON notify.deliveries (next_at) WHERE state = 'due';
COMMENT ON TABLE notify.notices IS 'what was noticed, each once; rows never change';
COMMENT ON COLUMN notify.notices.id IS 'follows from what it is about; the webhook-id';
COMMENT ON COLUMN notify.notices.kind IS 'such as budget.threshold';
COMMENT ON COLUMN notify.notices.cluster IS 'the cluster that it is about; null for the organisation';
COMMENT ON COLUMN notify.notices.account IS 'the account that it is about; null for none alone';
COMMENT ON COLUMN notify.notices.body IS 'the payload, byte for byte in UTF-8';
COMMENT ON COLUMN notify.notices.is_overtaken IS 'another one said more at once: nobody is told';
COMMENT ON TABLE notify.deliveries IS 'who is to be told what, and how far that has come';
COMMENT ON COLUMN notify.deliveries.target IS 'a name of the file of recipients; of mail with a digest of the address, which is not kept';
COMMENT ON COLUMN notify.deliveries.state IS 'due, sent, given_up';
COMMENT ON COLUMN notify.deliveries.attempts IS 'attempts that ended; a number';
COMMENT ON COLUMN notify.deliveries.next_at IS 'not tried before';
COMMENT ON COLUMN notify.deliveries.sent_at IS 'when it was taken; null before';
COMMENT ON COLUMN notify.deliveries.said IS 'what went wrong at the last attempt; null when nothing did';
GRANT USAGE ON SCHEMA notify TO gpuledger_writer;
-- What was noticed never changes; how far it has been told does.
GRANT SELECT, INSERT ON notify.notices TO gpuledger_writer;
GRANT SELECT, INSERT, UPDATE (state, attempts, next_at, sent_at, said) ON notify.deliveries TO gpuledger_writer;
