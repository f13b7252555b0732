"""Journal, postings, projections, side store, telemetry."""

from alembic import op

from gpuledger_migrations.scripts import run_script

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0001_ledger.sql")


def downgrade() -> None:
    op.execute("DROP SCHEMA ledger, side, telemetry CASCADE")
