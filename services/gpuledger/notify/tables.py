"""Tables of notifications (schema ``notify``): what was noticed, and how far each recipient has been told.

They are in no journal: a rebuild of the ledger leaves them, so that nobody is told twice.
"""

import sqlalchemy as sa

from gpuledger.database.metadata import METADATA, Instant

Column, Text, BigInteger = sa.Column, sa.Text, sa.BigInteger

notices = sa.Table(
    "notices",
    METADATA,
    Column("id", Text, primary_key=True, comment="follows from what it is about; the webhook-id"),
    Column("kind", Text, nullable=False, comment="such as budget.threshold"),
    Column("cluster", Text, comment="the cluster that it is about; null for the organisation"),
    Column("account", Text, comment="the account that it is about; null for none alone"),
    Column("body", Text, nullable=False, comment="the payload, byte for byte in UTF-8"),
    Column(
        "is_overtaken", sa.Boolean, nullable=False, comment="another one said more at once: nobody is told"
    ),
    Column("noticed_at", Instant, nullable=False),
    schema="notify",
    comment="what was noticed, each once; rows never change",
)

deliveries = sa.Table(
    "deliveries",
    METADATA,
    Column("notice", Text, sa.ForeignKey("notify.notices.id"), primary_key=True),
    Column(
        "target",
        Text,
        primary_key=True,
        comment="a name of the file of recipients; of mail with a digest of the address, which is not kept",
    ),
    Column("state", Text, nullable=False, comment="due, sent, given_up"),
    Column("attempts", BigInteger, nullable=False, comment="attempts that ended; a number"),
    Column("next_at", Instant, nullable=False, comment="not tried before"),
    Column("sent_at", Instant, comment="when it was taken; null before"),
    Column("said", Text, comment="what went wrong at the last attempt; null when nothing did"),
    sa.CheckConstraint("state IN ('due', 'sent', 'given_up')", name="state"),
    schema="notify",
    comment="who is to be told what, and how far that has come",
)

# Serves the sender: what is due, the longest due first.
sa.Index("ix_deliveries_due", deliveries.c.next_at, postgresql_where=deliveries.c.state == "due")

__all__ = ["deliveries", "notices"]
