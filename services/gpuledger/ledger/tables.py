"""The ledger's tables, column by column. Seen by the ledger's own SQL modules and by migrations only.

Append only (triggers refuse change, even by the owner): ``journal``, ``postings``, ``identities``. The first two
are partitioned by the month of ``recorded_at``; `ledger.make_partitions` makes their partitions.
Projections (dropped and rebuilt from the journal at will): everything else in schema ``ledger``.
What is erasable and what is sampled stands in ``side_tables``, positions and messages in ``stream_tables``.
"""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSON

from gpuledger.database.metadata import METADATA, Instant

Column, Text, BigInteger, Integer = sa.Column, sa.Text, sa.BigInteger, sa.Integer

books = sa.Table(
    "books",
    METADATA,
    Column("book", Text, primary_key=True, comment="cluster, or ~org"),
    Column("last_seq", BigInteger, nullable=False, comment="sequence of the newest journal row; 0 for none"),
    Column("head", sa.LargeBinary, nullable=False, comment="row_hash of the newest journal row"),
    Column("last_recorded_at", Instant, nullable=False),
    Column(
        "ticked_at",
        Instant,
        comment="newest tick: open runs are charged up to here; null before the first",
    ),
    Column(
        "collisions", BigInteger, nullable=False, server_default="0", comment="attempts given up for others"
    ),
    schema="ledger",
    comment="one row per book; its row lock is the book lock",
)

journal = sa.Table(
    "journal",
    METADATA,
    Column("book", Text, primary_key=True),
    Column(
        "seq", BigInteger, primary_key=True, autoincrement=False, comment="gapless from 1 within the book"
    ),
    Column("recorded_at", Instant, primary_key=True, comment="strictly increasing within the book"),
    Column("effective_at", Instant, nullable=False, comment="when it happened, whole seconds"),
    Column("type", Text, nullable=False, comment="event type without prefix and version"),
    Column("source", Text, nullable=False),
    Column("event_id", Text, nullable=False),
    Column(
        "digest",
        sa.LargeBinary,
        nullable=False,
        comment="of the bytes as they arrived (keyed where they name a user)",
    ),
    Column("workload", Text),
    Column("run", Text),
    Column("body", JSON, nullable=False, comment="the fact; users are tokens"),
    Column("extra_ref", sa.LargeBinary, comment="salted digest of keys kept in side.texts"),
    Column(
        "row_hash",
        sa.LargeBinary,
        nullable=False,
        comment="SHA-256 over the previous hash, all columns and the postings",
    ),
    # Serves derive-and-diff: all facts known of a workload.
    sa.Index("ix_journal_workload", "book", "workload", postgresql_where=sa.text("workload IS NOT NULL")),
    # Serves "latest cycle", "periods opened", rebuilds of the inventory and the organisation.
    sa.Index("ix_journal_type", "book", "type", "seq", postgresql_where=sa.text("workload IS NULL")),
    # Serves "which runs of this job are known": a scheduler's number of a job stands before the first hyphen.
    sa.Index(
        "ix_journal_job",
        "book",
        sa.text("split_part(workload, '-', 1)"),
        postgresql_where=sa.text("type = 'workload.submitted'"),
    ),
    schema="ledger",
    postgresql_partition_by="RANGE (recorded_at)",
)

# Its key serves the identity check of every batch, and look-ups by event id.
identities = sa.Table(
    "identities",
    METADATA,
    Column("book", Text, primary_key=True),
    Column("event_id", Text, primary_key=True),
    Column("source", Text, primary_key=True),
    Column("digest", sa.LargeBinary, primary_key=True),
    Column("seq", BigInteger, nullable=False, comment="the journal row"),
    schema="ledger",
    comment="the identity of every journal row, unique in the book",
)

postings = sa.Table(
    "postings",
    METADATA,
    Column("book", Text, primary_key=True),
    Column(
        "seq", BigInteger, primary_key=True, autoincrement=False, comment="the journal row that caused it"
    ),
    Column("n", Integer, primary_key=True, autoincrement=False, comment="from 1 within the journal row"),
    Column("recorded_at", Instant, primary_key=True, comment="that of the journal row"),
    Column("code", Text, nullable=False, comment="grant, charge, unallocated, ..."),
    Column("commodity", Text, nullable=False, comment="gpu_ms (physical) or gpu_ms_weighted"),
    Column("amount", BigInteger, sa.CheckConstraint("amount > 0", name="positive"), nullable=False),
    Column("debit_pot", Text, nullable=False),
    Column("debit_account", Text, nullable=False),
    Column("debit_period", Text, nullable=False),
    Column("credit_pot", Text, nullable=False),
    Column("credit_account", Text, nullable=False),
    Column("credit_period", Text, nullable=False),
    Column("workload", Text),
    Column("run", Text),
    Column("effective_on", sa.Date, nullable=False, comment="day in the organisation's zone"),
    Column("reverses_seq", BigInteger, comment="the newest journal row whose posting this corrects"),
    Column("reason", Text, comment="why a correction was posted"),
    # Serves the "diff" of derive-and-diff: what is posted for a workload.
    sa.Index("ix_postings_workload", "book", "workload", postgresql_where=sa.text("workload IS NOT NULL")),
    # Serve settlements, which ask for days however late these were booked: blocks are mostly of few days.
    sa.Index("ix_postings_day", "effective_on", postgresql_using="brin"),
    sa.Index(
        "ix_postings_settled",
        "book",
        "effective_on",
        postgresql_where=sa.text("code IN ('expiry', 'rollover')"),
    ),
    schema="ledger",
    postgresql_partition_by="RANGE (recorded_at)",
)

balances = sa.Table(
    "balances",
    METADATA,
    Column("book", Text, primary_key=True),
    Column("commodity", Text, primary_key=True),
    Column("account", Text, primary_key=True),
    Column("period", Text, primary_key=True),
    Column("pot", Text, primary_key=True),
    Column(
        "code", Text, primary_key=True, comment="movements of one kind; a pot's balance is the sum over codes"
    ),
    Column("amount", BigInteger, nullable=False, comment="credits minus debits"),
    schema="ledger",
)

segments = sa.Table(
    "segments",
    METADATA,
    Column("id", BigInteger, sa.Identity(always=True), primary_key=True),
    Column("book", Text, nullable=False),
    Column("workload", Text, nullable=False),
    Column("run", Text, nullable=False),
    Column("account", Text, nullable=False),
    Column("class", Text, nullable=False, key="klass"),
    Column("user_token", Text, nullable=False),
    Column("gpus_milli", BigInteger, nullable=False),
    Column("gpu_model", Text),
    Column("hosts", ARRAY(Text), nullable=False),
    Column("from_at", Instant, nullable=False),
    Column("to_at", Instant, comment="exclusive; null while the run is open"),
    Column("estimated", sa.Boolean, nullable=False),
    Column("since_seq", BigInteger, nullable=False, comment="journal row from which the book says so"),
    Column("until_seq", BigInteger, comment="journal row from which the book says otherwise"),
    Column(
        "capped_at",
        Instant,
        comment="while the run is open: its declared limit, beyond which nothing is charged",
    ),
    # Serves ticks and the open remainder of balances.
    sa.Index("ix_segments_open", "book", postgresql_where=sa.text("until_seq IS NULL AND to_at IS NULL")),
    # Serves reports: the segments of a book that are in force, by time.
    sa.Index("ix_segments_current", "book", "from_at", postgresql_where=sa.text("until_seq IS NULL")),
    # Serves derive-and-diff.
    sa.Index("ix_segments_workload", "book", "workload"),
    # Serves the pipelines: what has changed since a journal row.
    sa.Index("ix_segments_since", "since_seq", "until_seq", postgresql_using="brin"),
    schema="ledger",
)

waits = sa.Table(
    "waits",
    METADATA,
    Column("id", BigInteger, sa.Identity(always=True), primary_key=True),
    Column("book", Text, nullable=False),
    Column("workload", Text, nullable=False),
    Column("account", Text, nullable=False),
    Column("gpus_milli", BigInteger, nullable=False),
    Column("gpu_model", Text),
    Column("minimum_runtime_s", BigInteger, nullable=False),
    Column("priority", BigInteger, nullable=False),
    Column("submitted_at", Instant, nullable=False),
    Column("from_at", Instant, nullable=False, comment="eligible from here on"),
    Column("to_at", Instant, comment="exclusive; null while it still waits"),
    Column("began_at", Instant, comment="since when it waits, where what it asks for was changed since"),
    Column("since_seq", BigInteger, nullable=False),
    Column("until_seq", BigInteger),
    # Serves the policy's state (who waits at an instant) and the demand roll-up.
    sa.Index("ix_waits_current", "book", "from_at", postgresql_where=sa.text("until_seq IS NULL")),
    sa.Index("ix_waits_workload", "book", "workload"),
    sa.Index("ix_waits_since", "since_seq", "until_seq", postgresql_using="brin"),
    # Serves the roll-up of waits: the few that were cut.
    sa.Index("ix_waits_began", "book", "began_at", postgresql_where=sa.text("began_at IS NOT NULL")),
    schema="ledger",
    comment="intervals in which a workload was eligible to run and did not",
)

holds = sa.Table(
    "holds",
    METADATA,
    Column("id", BigInteger, sa.Identity(always=True), primary_key=True),
    Column("book", Text, nullable=False),
    Column("workload", Text, nullable=False),
    Column("attempt", BigInteger, nullable=False),
    Column("from_at", Instant, nullable=False),
    Column("to_at", Instant, nullable=False),
    Column("account", Text, nullable=False),
    Column("gpus_milli", BigInteger, nullable=False),
    Column("gpu_model", Text),
    Column("run", Text, comment="the run that drains it; null while nothing has started"),
    Column("expires_at", Instant, comment="a start at or after this finds no hold"),
    Column("since_seq", BigInteger, nullable=False),
    Column("until_seq", BigInteger),
    # Serves balances and renewals: what is set aside at an instant.
    sa.Index("ix_holds_current", "book", "to_at", postgresql_where=sa.text("until_seq IS NULL")),
    sa.Index("ix_holds_workload", "book", "workload"),
    schema="ledger",
    comment="GPU-time set aside by admissions, as windows of attempts",
)

hosts = sa.Table(
    "hosts",
    METADATA,
    Column("id", BigInteger, sa.Identity(always=True), primary_key=True),
    Column("book", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("gpus", BigInteger, nullable=False),
    Column("gpu_model", Text, nullable=False),
    Column("state", Text, nullable=False, comment="healthy, unhealthy, maintenance, draining"),
    Column("from_at", Instant, nullable=False),
    Column("to_at", Instant),
    Column("since_seq", BigInteger, nullable=False),
    Column("until_seq", BigInteger),
    # Where trouble of some devices leaves the others usable, a host has a row for each state.
    Column("partial_use", sa.Boolean, nullable=False, server_default=sa.text("false")),
    sa.Index("ix_hosts_host", "book", "host"),
    schema="ledger",
    comment="installed GPUs by host and health, as intervals",
)

accounts = sa.Table(
    "accounts",
    METADATA,
    Column("account", Text, primary_key=True, comment="immutable id: the path it was created under"),
    Column("path", Text, nullable=False, comment="the path in force"),
    Column("created_seq", BigInteger, nullable=False),
    schema="ledger",
)

shares = sa.Table(
    "shares",
    METADATA,
    Column("account", Text, primary_key=True),
    Column("from_at", Instant, primary_key=True),
    Column("share", BigInteger, nullable=False),
    Column(
        "set_seq",
        BigInteger,
        primary_key=True,
        autoincrement=False,
        comment="sequence in ~org; the newest of one instant is in force",
    ),
    schema="ledger",
)

organisation = sa.Table(
    "organisation",
    METADATA,
    Column("set_seq", BigInteger, primary_key=True, autoincrement=False),
    Column("timezone", Text, nullable=False),
    Column("period", Text, nullable=False),
    schema="ledger",
)

overdrafts = sa.Table(
    "overdrafts",
    METADATA,
    Column("account", Text, primary_key=True),
    Column("from_at", Instant, primary_key=True),
    Column("overdraft", Text, nullable=False),
    Column("set_seq", BigInteger, primary_key=True, autoincrement=False),
    schema="ledger",
)

periods = sa.Table(
    "periods",
    METADATA,
    Column("book", Text, primary_key=True),
    Column("period", Text, primary_key=True),
    Column("opened_seq", BigInteger),
    Column("installed_gpu_ms", BigInteger),
    Column(
        "state", Text, nullable=False, server_default=sa.text("'open'"), comment="open, closing or closed"
    ),
    Column("version", BigInteger, nullable=False, server_default=sa.text("0"), comment="closes begun so far"),
    Column("closing_seq", BigInteger, comment="the row that fixed what the last close is made of"),
    Column("closed_seq", BigInteger, comment="the row that settled it; null while it is open or closing"),
    schema="ledger",
)

lots = sa.Table(
    "lots",
    METADATA,
    Column("book", Text, primary_key=True),
    Column("account", Text, primary_key=True),
    Column("period", Text, primary_key=True),
    Column("name", Text, primary_key=True, comment="its origin within account and period, such as grant/12"),
    Column("priority", BigInteger),
    Column("expires_on", sa.Date, comment="first day on which it is gone; null for the end of the period"),
    Column("created_seq", BigInteger, nullable=False),
    Column(
        "amount",
        BigInteger,
        nullable=False,
        comment="weighted gpu_ms; below zero for a debt that was carried over",
    ),
    Column("rollover", Text),
    # Serves ticks: what lapses.
    sa.Index("ix_lots_expiry", "book", "expires_on", postgresql_where=sa.text("expires_on IS NOT NULL")),
    schema="ledger",
    comment="budget by origin: grants, what was received, what was carried over",
)

__all__ = [
    "accounts", "balances", "books", "holds", "hosts", "identities", "journal", "lots", "organisation",
    "overdrafts", "periods", "postings", "segments", "shares", "waits",
]  # fmt: skip
