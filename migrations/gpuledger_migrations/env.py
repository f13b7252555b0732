"""Alembic environment: one transaction per revision, under an advisory lock and timeouts."""

from typing import Any

from alembic import context
from sqlalchemy import create_engine, pool, text

import gpuledger.identity.tables
import gpuledger.ledger.policy_tables
import gpuledger.ledger.side_tables
import gpuledger.ledger.stream_tables
import gpuledger.ledger.tables
import gpuledger.notify.tables
import gpuledger.warehouse.close_tables
import gpuledger.warehouse.forecast_tables
import gpuledger.warehouse.tables  # noqa: F401 - registers its tables on the metadata
from gpuledger.database.metadata import METADATA
from gpuledger_migrations import roles

MIGRATION_LOCK = 6_102_026
"""Advisory lock that keeps two migrations apart."""

SCHEMAS = {"identity", "ledger", "notify", "side", "telemetry", "warehouse"}


PARTITIONS = "SELECT oid::regclass::text FROM pg_class WHERE relispartition AND relkind = 'r'"
"""Partitions come and go with the months; the models know their parents."""


engine = create_engine(context.config.attributes["url"], poolclass=pool.NullPool)
with engine.connect() as connection:
    connection.execute(text("SET statement_timeout = '5min'"))
    # Waits as long as another migration may take; only locks on tables are not waited for.
    connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": MIGRATION_LOCK})
    connection.execute(text("SET lock_timeout = '10s'"))
    connection.commit()
    roles.provide(connection)
    partitions = set(connection.scalars(text(PARTITIONS)))
    connection.commit()

    def _ours(name: str | None, kind: str, parents: Any) -> bool:  # noqa: ANN401 - a mapping of Alembic's own
        if kind == "table":
            return parents["schema_qualified_table_name"] not in partitions
        return name in SCHEMAS if kind == "schema" else True

    context.configure(
        connection=connection,
        target_metadata=METADATA,
        include_schemas=True,
        include_name=_ours,
        compare_type=True,
        transaction_per_migration=True,
        version_table_schema="public",
    )
    with context.begin_transaction():
        context.run_migrations()
    connection.commit()
