"""Tables of the policy's service: what is quickly read of cycles, and can be had again from the journal by replay."""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from gpuledger.database.metadata import METADATA, Instant
from gpuledger.ledger.tables import journal

Column, Text, BigInteger, Integer = sa.Column, sa.Text, sa.BigInteger, sa.Integer

cycle_decisions = sa.Table(
    "cycle_decisions",
    METADATA,
    Column("book", Text, primary_key=True),
    Column(
        "seq", BigInteger, primary_key=True, autoincrement=False, comment="the cycle's row in the journal"
    ),
    Column("n", Integer, primary_key=True, autoincrement=False, comment="CRC-32 of the workload modulo of"),
    Column("of", Integer, nullable=False, comment="among how many rows the cycle's decisions lie"),
    Column("decided_at", Instant, nullable=False, comment="the instant that the cycle decided for"),
    Column(
        "decisions",
        sa.LargeBinary,
        nullable=False,
        comment="what lies there, as the policy reads it, deflated",
    ),
    # Serves forgetting: what is older than it is kept.
    sa.Index("ix_cycle_decisions_decided", "book", "decided_at"),
    schema="ledger",
    comment="every decision of recent cycles; those of older ones are had by replay",
)

policy_status = sa.Table(
    "policy_status",
    METADATA,
    Column("book", Text, primary_key=True),
    Column("cycle", Text, nullable=False),
    Column("decided_at", Instant, nullable=False, comment="the instant that the newest cycle decided for"),
    Column("recorded_at", Instant, nullable=False),
    Column("took_ms", BigInteger, nullable=False, comment="from reading the state to its record"),
    Column("cycles", BigInteger, nullable=False, comment="recorded so far"),
    Column("figures", JSONB, nullable=False, comment="what the newest cycle counted"),
    Column(
        "amendments",
        BigInteger,
        nullable=False,
        server_default=sa.text("0"),
        comment="of cycles, recorded so far",
    ),
    schema="ledger",
    comment="what the newest cycle of a cluster came to, for whoever watches",
)

# Serves "the newest cycle up to an instant".
sa.Index(
    "ix_journal_cycle",
    journal.c.book,
    journal.c.effective_at,
    journal.c.seq,
    postgresql_where=sa.text("type = 'allocation.issued'"),
)

# Serves "what amended a cycle up to an instant".
sa.Index(
    "ix_journal_amendment",
    journal.c.book,
    journal.c.effective_at,
    journal.c.seq,
    postgresql_where=sa.text("type = 'allocation.amended'"),
)

__all__ = ["cycle_decisions", "policy_status"]
