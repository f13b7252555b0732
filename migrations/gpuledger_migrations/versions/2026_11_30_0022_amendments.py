"""Amendments of cycles by their instant, and how many there were."""

from gpuledger_migrations.scripts import run_script

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0022_amendments.sql")


def downgrade() -> None:
    run_script("0022_without.sql")
