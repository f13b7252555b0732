CREATE SCHEMA identity;
CREATE TABLE identity.tokens (
    id text NOT NULL,
    digest bytea NOT NULL,
    name text NOT NULL,
    role text NOT NULL,
    subtree text,
    clusters text[] NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    expires_at timestamptz NOT NULL,
    replaces text,
    revoked_at timestamptz,
    revoked_by text,
    last_used_at timestamptz,
    CONSTRAINT pk_tokens PRIMARY KEY (id),
    CONSTRAINT fk_tokens_replaces FOREIGN KEY (replaces) REFERENCES identity.tokens (id)
);
COMMENT ON TABLE identity.tokens IS 'who may ask the API; rows are never deleted';
COMMENT ON COLUMN identity.tokens.id IS 'the public part of the token''s text';
COMMENT ON COLUMN identity.tokens.digest IS 'SHA-256 of the secret part';
COMMENT ON COLUMN identity.tokens.name IS 'how orders and logs name who uses it';
COMMENT ON COLUMN identity.tokens.subtree IS 'an account and all below it; null for every account';
COMMENT ON COLUMN identity.tokens.clusters IS 'empty for every cluster';
COMMENT ON COLUMN identity.tokens.expires_at IS 'first instant at which it is no good';
COMMENT ON COLUMN identity.tokens.replaces IS 'the token that it was made for';
COMMENT ON COLUMN identity.tokens.last_used_at IS 'to the minute; null when never';
GRANT USAGE ON SCHEMA identity TO gpuledger_writer;
-- Who and what a token is for never changes; that it ends, and when it was used, does.
GRANT SELECT, INSERT, UPDATE (expires_at, revoked_at, revoked_by, last_used_at) ON identity.tokens TO gpuledger_writer;
