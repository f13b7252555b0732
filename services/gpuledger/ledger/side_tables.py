"""Tables beside the history: erasable names and free text (schema ``side``), samples (schema ``telemetry``)."""

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
    Column("workload", Text, primary_key=True, comment="empty when no run held the GPU"),
    Column("run", Text, primary_key=True),
    Column("rung", Text, primary_key=True, comment="gpu_util, gr_engine_active, sm_active or tensor_active"),
    Column("sampled_gpu_ms", BigInteger, nullable=False),
    Column("used_gpu_upms", BigInteger, nullable=False, comment="gpu_ms times parts per million of the rung"),
    schema="telemetry",
)

__all__ = ["buckets", "samples", "texts", "user_keys"]
