"""Tables beside the history: erasable names and texts (schema ``side``), samples (``telemetry``), marks and sums."""

import sqlalchemy as sa

from gpuledger.database.metadata import METADATA, Instant

Column, Text, BigInteger = sa.Column, sa.Text, sa.BigInteger

user_keys = sa.Table(
    "user_keys",
    METADATA,
    Column("name", Text, primary_key=True),
    Column(
        "key", sa.LargeBinary, nullable=False, comment="random; erasing the row makes the token meaningless"
    ),
    Column("token", Text, nullable=False, unique=True),
    schema="side",
)

texts = sa.Table(
    "texts",
    METADATA,
    Column("ref", sa.LargeBinary, primary_key=True, comment="SHA-256 over salt and body"),
    Column("salt", sa.LargeBinary, nullable=False),
    Column("body", sa.LargeBinary, nullable=False),
    schema="side",
)

samples = sa.Table(
    "samples",
    METADATA,
    Column("book", Text, primary_key=True),
    Column("source", Text, primary_key=True),
    Column("event_id", Text, primary_key=True),
    schema="telemetry",
    comment="identities already counted",
)

buckets = sa.Table(
    "buckets",
    METADATA,
    Column("book", Text, primary_key=True),
    Column("bucket_at", Instant, primary_key=True, comment="start of five minutes"),
    Column("gpu", Text, primary_key=True),
    Column(
        "workload",
        Text,
        primary_key=True,
        comment="empty when a host did not say which run, or no run held the GPU",
    ),
    Column(
        "run",
        Text,
        primary_key=True,
        comment="without a workload: the handle of the run, or empty when no run held the GPU",
    ),
    Column("rung", Text, primary_key=True, comment="gpu_util, gr_engine_active, sm_active or tensor_active"),
    Column("sampled_gpu_ms", BigInteger, nullable=False),
    Column("used_gpu_upms", BigInteger, nullable=False, comment="gpu_ms times parts per million of the rung"),
    # Serves ticks: when a run was named last.
    sa.Index("ix_buckets_run", "book", "workload", "run", "bucket_at", postgresql_where=sa.text("run <> ''")),
    schema="telemetry",
)

handles = sa.Table(
    "handles",
    METADATA,
    Column("book", Text, primary_key=True),
    Column("handle", Text, primary_key=True, comment="job/NUMBER, pod/UID or pod/NAMESPACE/NAME"),
    Column("workload", Text, primary_key=True),
    Column("run", Text, primary_key=True),
    # Serves the search for signs of life: the handles of a run.
    sa.Index("ix_handles_run", "book", "workload", "run"),
    schema="telemetry",
    comment="what hosts call runs; a projection of the journal",
)

watermarks = sa.Table(
    "watermarks",
    METADATA,
    Column("book", Text, primary_key=True),
    Column("source", Text, primary_key=True),
    Column("told_until_at", Instant, nullable=False),
    schema="ledger",
    comment="up to when each source has told all it knows: its newest heartbeat",
)

day_sums = sa.Table(
    "day_sums",
    METADATA,
    Column("book", Text, primary_key=True),
    Column("account", Text, primary_key=True),
    Column("day", sa.Date, primary_key=True, comment="that movements belong to, whenever they were booked"),
    Column("used", BigInteger, nullable=False, comment="of the budget, less what came back; no lots"),
    Column("charged", BigInteger, nullable=False, comment="without what was posted back of adjustments"),
    Column("credited", BigInteger, nullable=False),
    Column("unallocated", BigInteger, nullable=False),
    schema="ledger",
    comment="weighted sums of postings by account and the organisation's day",
)

__all__ = ["buckets", "day_sums", "handles", "samples", "texts", "user_keys", "watermarks"]
