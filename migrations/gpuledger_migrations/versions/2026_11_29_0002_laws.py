"""Append-only triggers, roles, and the views pipelines may read."""

from alembic import op

from gpuledger_migrations.scripts import run_script

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0002_laws.sql")


def downgrade() -> None:
    # The roles stay: other databases of the server may use them.
    op.execute("DROP SCHEMA ledger_read CASCADE")
    op.execute("DROP FUNCTION ledger.refuse_change() CASCADE")
    op.execute("REVOKE ALL ON ALL TABLES IN SCHEMA ledger, side, telemetry FROM gpuledger_writer")
    op.execute("REVOKE ALL ON SCHEMA ledger, side, telemetry FROM gpuledger_writer")
