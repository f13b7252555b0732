"""Tables of what comes in and goes out: positions in streams, letters that cannot be read, messages to be published."""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from gpuledger.database.metadata import METADATA, Instant

Column, Text, BigInteger, Integer = sa.Column, sa.Text, sa.BigInteger, sa.Integer

stream_offsets = sa.Table(
    "stream_offsets",
    METADATA,
    Column("consumer", Text, primary_key=True),
    Column("stream", Text, primary_key=True),
    Column("partition", Integer, primary_key=True, autoincrement=False),
    Column("position", BigInteger, nullable=False, comment="next position to read"),
    Column(
        "epoch",
        BigInteger,
        nullable=False,
        comment="raised by each worker that takes over; older ones are fenced",
    ),
    Column(
        "end_position",
        BigInteger,
        comment="where the stream ended when the worker looked; less the position: what waits",
    ),
    Column("seen_at", Instant, comment="when the worker looked"),
    Column(
        "published_at",
        Instant,
        comment="when the newest record that was read had been published, where the broker says so",
    ),
    schema="ledger",
)

dead_letters = sa.Table(
    "dead_letters",
    METADATA,
    Column("id", BigInteger, sa.Identity(always=True), primary_key=True),
    Column("received_at", Instant, nullable=False),
    Column("stream", Text, nullable=False, comment="topic, or import/SOURCE/CLUSTER"),
    Column("partition", Integer, nullable=False),
    Column("position", BigInteger, nullable=False, comment="offset, or line number from 1"),
    Column(
        "place", Text, nullable=False, comment="where a person finds it: path:line or topic[partition]@offset"
    ),
    Column("code", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("hint", Text, nullable=False),
    Column("raw", sa.LargeBinary, nullable=False),
    Column("raw_digest", sa.LargeBinary, nullable=False),
    Column("context", JSONB, nullable=False, comment="what a retry needs besides the bytes"),
    Column("resolved_at", Instant, comment="when a retry read it after all"),
    Column("cluster", Text, comment="the cluster it is known to be of, if any"),
    Column("discarded_at", Instant, comment="when somebody decided that nobody needs it"),
    Column("discarded_by", Text, comment="token of whoever decided so"),
    Column("discarded_ref", sa.LargeBinary, comment="salted digest of the reason, which side.texts keeps"),
    sa.CheckConstraint("resolved_at IS NULL OR discarded_at IS NULL", name="one_end"),
    sa.Index("uq_dead_letters_place", "stream", "partition", "position", "raw_digest", unique=True),
    # Serves lists, retries and counts of what waits.
    sa.Index(
        "ix_dead_letters_waiting",
        "id",
        postgresql_where=sa.text("resolved_at IS NULL AND discarded_at IS NULL"),
    ),
    schema="ledger",
)

outbox = sa.Table(
    "outbox",
    METADATA,
    Column("id", BigInteger, sa.Identity(always=True), primary_key=True),
    Column("topic", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("value", sa.LargeBinary, nullable=False),
    Column("published_at", Instant),
    # Serves the relay: what is still to be published, oldest first.
    sa.Index("ix_outbox_pending", "id", postgresql_where=sa.text("published_at IS NULL")),
    schema="ledger",
)

__all__ = ["dead_letters", "outbox", "stream_offsets"]
