DROP TABLE identity.tokens;
DROP SCHEMA identity;
