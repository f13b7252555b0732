"""Sealed closes and their statements."""

from gpuledger_migrations.scripts import run_script

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0021_closes.sql")


def downgrade() -> None:
    run_script("0021_without.sql")
