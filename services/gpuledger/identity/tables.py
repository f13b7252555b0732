"""The table of tokens (schema ``identity``). No secret is kept: who reads all of it cannot log in."""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from gpuledger.database.metadata import METADATA, Instant

Column, Text = sa.Column, sa.Text

tokens = sa.Table(
    "tokens",
    METADATA,
    Column("id", Text, primary_key=True, comment="the public part of the token's text"),
    Column("digest", sa.LargeBinary, nullable=False, comment="SHA-256 of the secret part"),
    Column("name", Text, nullable=False, comment="how orders and logs name who uses it"),
    Column("role", Text, nullable=False),
    Column("subtree", Text, comment="an account and all below it; null for every account"),
    Column("clusters", ARRAY(Text), nullable=False, comment="empty for every cluster"),
    Column("created_at", Instant, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("expires_at", Instant, nullable=False, comment="first instant at which it is no good"),
    Column("replaces", Text, sa.ForeignKey("identity.tokens.id"), comment="the token that it was made for"),
    Column("revoked_at", Instant),
    Column("revoked_by", Text),
    Column("last_used_at", Instant, comment="to the minute; null when never"),
    schema="identity",
    comment="who may ask the API; rows are never deleted",
)
