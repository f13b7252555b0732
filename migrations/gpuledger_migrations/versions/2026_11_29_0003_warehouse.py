"""Warehouse tables."""

from alembic import op

from gpuledger_migrations.scripts import run_script

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0003_warehouse.sql")


def downgrade() -> None:
    op.execute("DROP SCHEMA warehouse CASCADE")
