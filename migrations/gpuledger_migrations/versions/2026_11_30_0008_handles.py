"""Samples find their runs by what hosts call them."""

from gpuledger_migrations.scripts import run_script

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0008_handles.sql")


def downgrade() -> None:
    run_script("0008_without.sql")
